/** The version of this build; a test keeps it equal to `deno.json` and to the newest entry of the changelog. */
export const VERSION = "0.1.0";
