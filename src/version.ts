/** The version of this build; `scripts/checks.ts` keeps it equal to the changelog's newest entry. */
export const VERSION = "0.1.0";
