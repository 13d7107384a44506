/** What axe finds on a page, in both themes and three sizes; and whether it is wider than its screen. */
import axe from "axe-core";
import type { Page } from "playwright-core";

export const SIZES = {
  desktop: { width: 1280, height: 800 },
  tablet: { width: 768, height: 1024 },
  phone: { width: 320, height: 640 },
};

/** The rules that are looked at: the other theme is other colours and nothing else. */
const RULES = { light: "undefined", dark: "['color-contrast', 'link-in-text-block']" };

/** Every fault of the page as it is now, as a sentence. */
export async function faultsOf(page: Page, where: string): Promise<string[]> {
  const found: string[] = [];
  // Into the page's own world by the debugger, which its policy does not bind.
  if (!await page.evaluate("'axe' in window")) await page.evaluate(axe.source);
  for (const colorScheme of ["light", "dark"] as const) {
    const run = `axe.run({ resultTypes: ['violations'], runOnly: ${RULES[colorScheme]} })`;
    // A colour on its way from one theme to the other is of neither.
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    for (const [size, viewport] of Object.entries(SIZES)) {
      await page.setViewportSize(viewport);
      const { violations } = await page.evaluate(run) as axe.AxeResults;
      for (const { id, nodes } of violations) {
        for (const { target, failureSummary } of nodes) {
          found.push(`${where} ${colorScheme} ${size}: ${id} at ${target}: ${failureSummary}`);
        }
      }
      const wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth") as number;
      if (wide > 0) found.push(`${where} ${size}: wider by ${wide}`);
    }
  }
  return found;
}
