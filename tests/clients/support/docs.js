// The snippets of docs/clients.md, so that what users copy is what is tested.

import { readFileSync } from "node:fs";

const text = readFileSync(new URL("../../../docs/clients.md", import.meta.url), "utf8");
const ADDRESS = "http://127.0.0.1:8000";

/** The code blocks under `## heading` in `language`, with the server's address in place. */
export function snippets(heading, language, url) {
  const section = text.split(/^## /m).find((part) => part.startsWith(`${heading}\n`));
  if (!section) throw new Error(`docs/clients.md has no section "${heading}"`);
  const blocks = [...section.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].filter((match) => match[1] === language);
  if (blocks.length === 0) throw new Error(`"${heading}" has no ${language} block`);
  return blocks.map((match) => match[2].replaceAll(ADDRESS, url));
}

/** The variables that a block of `export` lines sets. */
export function exportedVariables(block) {
  return Object.fromEntries([...block.matchAll(/(\w+)=(\S+)/g)].map((match) => [match[1], match[2]]));
}
