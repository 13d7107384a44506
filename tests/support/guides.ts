/** The documentation as tests read it: its pages, and the commands that they tell a reader to type. */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..", "..");

export interface Page {
  /** As `docs/queue.md`. */
  path: string;
  text: string;
}

/** Folders of guides, below the root: the recipes, and translations of the first page. */
const FOLDERS = ["docs", "docs/recipes", "docs/es", "docs/pt"];

/** README and its neighbours, then the guides, by name; without the decisions. */
export function guides(): Page[] {
  const inFolder = (folder: string) =>
    [...Deno.readDirSync(join(ROOT, folder))].map(({ name }) => `${folder}/${name}`).filter((path) =>
      path.endsWith(".md")
    ).sort();
  return ["README.md", "CONTRIBUTING.md", "SECURITY.md", ...FOLDERS.flatMap(inFolder)]
    .map((path) => ({ path, text: Deno.readTextFileSync(join(ROOT, path)) }));
}

export interface ShellCommand {
  /** As `docs/operate.md:14`. */
  place: string;
  /** What is typed, continued lines joined, without its comment. */
  text: string;
}

/** The commands of a page's shell blocks, a list for each block. */
export function shellBlocks({ path, text }: Page): ShellCommand[][] {
  const blocks: ShellCommand[][] = [];
  let block: ShellCommand[] | null = null;
  let typed = "";
  text.split("\n").forEach((line, i) => {
    if (/^\s*```/.test(line)) {
      block = /```(?:sh|bash|shell|console)$/.test(line) ? [] : null;
      if (block) blocks.push(block);
    } else if (block) {
      typed += line.replace(/(?:^|\s+)# .*$/, "").replace(/\\$/, "");
      if (line.endsWith("\\")) return;
      if (typed.trim() !== "") block.push({ place: `${path}:${i + 1}`, text: typed.trim() });
      typed = "";
    }
  });
  return blocks;
}

/** Each `paloma …` that a page names, in a block or within a sentence. `a\|b` in a table are two commands. */
export function namedCommands(page: Page): ShellCommand[] {
  const typed = shellBlocks(page).flat().flatMap(({ place, text }) =>
    [...text.matchAll(/(?:^|\s)paloma (?!paloma )([a-z][^|&>;]*)/g)].map(([, args]) => ({ place, text: args! }))
  );
  const named = page.text.split("\n").flatMap((line, i) =>
    [...line.matchAll(/`(?:[^`]* )?paloma ([a-z][^`]*)`/g)].flatMap(([, args]) => {
      const [group, names = ""] = args!.split(" ");
      const texts = names.includes("\\|") ? names.split("\\|").map((name) => `${group} ${name}`) : [args!];
      return texts.map((text) => ({ place: `${page.path}:${i + 1}`, text }));
    })
  );
  return [...typed, ...named];
}
