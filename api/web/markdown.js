// A small, safe subset of Markdown: fenced code, headings, lists, inline code, bold. Text reaches the
// page through text nodes only, so nothing a model writes can become markup.

/** Splits text into {kind, source, ...} blocks. An unclosed fence runs to the end. */
export function parseBlocks(text) {
  const blocks = [];
  let current = null;
  const push = (kind, line, more = {}) => {
    if (current?.kind === kind && kind !== "heading") {
      current.lines.push(line);
    } else {
      current = { kind, lines: [line], ...more };
      blocks.push(current);
    }
  };
  let fence = null;
  for (const line of text.split("\n")) {
    const opener = line.match(/^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/);
    if (fence) {
      if (opener && opener[1].startsWith(fence.mark) && line.trim() === opener[1]) fence = current = null;
      else fence.block.lines.push(line);
    } else if (opener) {
      current = { kind: "code", lines: [], language: opener[2] };
      blocks.push(current);
      fence = { mark: opener[1], block: current };
    } else if (line.trim() === "") {
      current = null;
    } else if (/^#{1,6} /.test(line)) {
      push("heading", line.replace(/^#+ /, ""));
      current = null;
    } else if (/^\s*[-*] /.test(line)) {
      push("bullets", line.replace(/^\s*[-*] /, ""));
    } else if (/^\s*\d{1,9}[.)] /.test(line)) {
      push("numbers", line.replace(/^\s*\d+[.)] /, ""), { start: parseInt(line.trim(), 10) });
    } else if ((current?.kind === "bullets" || current?.kind === "numbers") && /^\s/.test(line)) {
      current.lines[current.lines.length - 1] += "\n" + line.trim();
    } else {
      push("paragraph", line);
    }
  }
  for (const block of blocks) block.source = [block.kind, block.language, block.start, ...block.lines].join("\n");
  return blocks;
}

function element(name, className, text) {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

/** Appends text with `code` and **bold** spans. */
function appendInline(parent, text) {
  let last = 0;
  for (const match of text.matchAll(/`([^`\n]+)`|\*\*([^*\n]+)\*\*/g)) {
    parent.append(text.slice(last, match.index));
    parent.append(match[1] !== undefined ? element("code", "", match[1]) : element("strong", "", match[2]));
    last = match.index + match[0].length;
  }
  parent.append(text.slice(last));
}

export async function copyText(button, text) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  setTimeout(() => (button.textContent = label), 1500);
}

function renderBlock(block) {
  if (block.kind === "code") {
    const text = block.lines.join("\n");
    const figure = element("figure", "code-block");
    const caption = element("figcaption", "", block.language || "text");
    const copy = element("button", "text-button", "Copy");
    copy.type = "button";
    copy.addEventListener("click", () => copyText(copy, text));
    caption.append(copy);
    const pre = element("pre");
    pre.tabIndex = 0; // scrolls with the keyboard
    pre.append(element("code", "", text));
    figure.append(caption, pre);
    return figure;
  }
  if (block.kind === "heading") {
    const heading = element("p", "heading");
    appendInline(heading, block.lines[0]);
    return heading;
  }
  if (block.kind === "bullets" || block.kind === "numbers") {
    const list = element(block.kind === "bullets" ? "ul" : "ol");
    if (block.start) list.start = block.start;
    for (const line of block.lines) {
      const item = element("li");
      appendInline(item, line);
      list.append(item);
    }
    return list;
  }
  const paragraph = element("p");
  appendInline(paragraph, block.lines.join("\n"));
  return paragraph;
}

/** Shows `text` in `parent`; blocks that did not change since the last call keep their nodes. */
export function renderMarkdown(parent, text) {
  const blocks = parseBlocks(text);
  const shown = parent.shownBlocks ?? [];
  let same = 0;
  while (same < blocks.length && same < shown.length && blocks[same].source === shown[same]) ++same;
  while (parent.childNodes.length > same) parent.lastChild.remove();
  for (const block of blocks.slice(same)) parent.append(renderBlock(block));
  parent.shownBlocks = blocks.map((block) => block.source);
}
