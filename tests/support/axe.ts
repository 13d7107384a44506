/** What axe finds on a page, in both themes and three sizes; and whether it is wider than its screen. */
import axe from "axe-core";
import type { Page } from "playwright-core";

export const SIZES = {
  desktop: { width: 1280, height: 800 },
  tablet: { width: 768, height: 1024 },
  phone: { width: 320, height: 640 },
};

/** The rules of colours: the other theme is other colours and nothing else. */
const OF_COLOURS = ["color-contrast", "link-in-text-block"];
const OTHER_RULES = Object.fromEntries(OF_COLOURS.map((rule) => [rule, { enabled: false }]));
const ALL_ELSE = `axe.run(${JSON.stringify({ resultTypes: ["violations"], rules: OTHER_RULES })})`;

/**
 * One element of each look among those with words: of the same colours and sizes from the root down, and as disabled,
 * contrast is the same. The reference has thousands of elements in a few hundred looks.
 */
const ONE_OF_EACH_LOOK = `(() => {
  const looks = new Map();
  const lookOf = new Map();
  const found = new Map();
  const hasWords = (element) => [...element.childNodes].some(({ nodeType, data }) => nodeType === 3 && data.trim());
  for (const element of document.querySelectorAll('*')) {
    const style = getComputedStyle(element);
    const { color, backgroundColor, backgroundImage, opacity, textShadow } = style;
    const { fontSize, fontWeight, textDecorationLine, borderBottom } = style;
    const isDisabled = (element.closest('label')?.control ?? element).matches(':disabled, [aria-disabled=true]');
    const isInText = element.matches('a') && hasWords(element.parentElement);
    const above = lookOf.get(element.parentElement);
    const colours = [color, backgroundColor, backgroundImage, opacity, textShadow];
    const sizes = [fontSize, fontWeight, textDecorationLine, borderBottom];
    const look = [above, ...colours, ...sizes, isDisabled, isInText].join('|');
    if (!looks.has(look)) looks.set(look, looks.size);
    lookOf.set(element, looks.get(look));
    if (found.has(looks.get(look)) || !element.checkVisibility({ visibilityProperty: true })) continue;
    const { width, height } = element.getBoundingClientRect();
    const isShown = width > 1 && height > 1;
    if (isShown && (hasWords(element) || element.matches('input, select, textarea'))) found.set(looks.get(look), element);
  }
  return [...found.values()];
})()`;

const COLOURS = `axe.run({ include: ${ONE_OF_EACH_LOOK} }, ${
  JSON.stringify({ resultTypes: ["violations"], runOnly: OF_COLOURS })
})`;

/** Every fault of the page as it is now, as a sentence; `sizes` are those in which it has a layout of its own. */
export async function faultsOf(page: Page, where: string, sizes = Object.keys(SIZES)): Promise<string[]> {
  const found: string[] = [];
  // Into the page's own world by the debugger, which its policy does not bind.
  if (!await page.evaluate("'axe' in window")) await page.evaluate(axe.source);
  const look = async (run: string, at: string) => {
    const { violations } = await page.evaluate(run) as axe.AxeResults;
    for (const { id, nodes } of violations) {
      for (const { target, failureSummary } of nodes) {
        found.push(`${where} ${at}: ${id} at ${target}: ${failureSummary}`);
      }
    }
  };
  for (const colorScheme of ["light", "dark"] as const) {
    // A colour on its way from one theme to the other is of neither.
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    for (const [size, viewport] of Object.entries(SIZES)) {
      await page.setViewportSize(viewport);
      const wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth") as number;
      if (wide > 0) found.push(`${where} ${size}: wider by ${wide}`);
      if (!sizes.includes(size)) continue;
      await look(COLOURS, `${colorScheme} ${size}`);
      if (colorScheme === "light") await look(ALL_ELSE, size);
    }
  }
  return found;
}
