"use strict";
// The page works without this: it adds a filter, sorting, keys, colours of code, and following a run that goes on.

const byId = (id) => document.getElementById(id);
const sorted = { column: -1, sign: 1 };

function filter() {
  const table = byId("trials");
  if (!table) return;
  const words = byId("words").value.toLowerCase().split(/\s+/);
  const outcome = byId("outcome").value;
  const most = Number(table.dataset.most);
  let found = 0;
  for (const row of table.tBodies[0].rows) {
    const text = row.textContent.toLowerCase();
    const isFound = words.every((word) => text.includes(word)) && (!outcome || row.cells[2].textContent === outcome);
    found += isFound;
    row.hidden = !isFound || found > most;
  }
  byId("found").textContent = `${found} of ${table.tBodies[0].rows.length}`;
}

function sort() {
  const table = byId("trials");
  if (!table || sorted.column < 0) return;
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head) => head.removeAttribute("aria-sort"));
  heads[sorted.column].setAttribute("aria-sort", sorted.sign > 0 ? "ascending" : "descending");
  const keyed = [...table.tBodies[0].rows].map((row) => {
    const text = row.cells[sorted.column].textContent;
    return { row, text, number: text === "-" ? -Infinity : Number(text) };
  });
  const isNumeric = keyed.every((one) => !Number.isNaN(one.number));
  const words = new Intl.Collator("en", { numeric: true });
  const order = isNumeric ? (a, b) => a.number - b.number || 0 : (a, b) => words.compare(a.text, b.text);
  keyed.sort((a, b) => sorted.sign * order(a, b));
  table.tBodies[0].append(...keyed.map((one) => one.row));
  filter();
}

function sortBy(column) {
  sorted.sign = sorted.column === column ? -sorted.sign : 1;
  sorted.column = column;
  sort();
}

function openTarget() {
  const target = location.hash && byId(decodeURIComponent(location.hash.slice(1)));
  for (let one = target; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
  if (target) {
    target.scrollIntoView();
    target.querySelector("summary")?.focus();
  }
}

// To the trial before or after this one: to its page, or in the one file to its section.
function turn(event) {
  const rel = { ArrowLeft: "prev", ArrowRight: "next" }[event.key];
  const isOther = event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || event.defaultPrevented;
  if (!rel || isOther || event.target.closest("input, select, .wide")) return;
  document.querySelector(`a[rel=${rel}]`)?.click();
  const sections = [...document.querySelectorAll("details.trial")];
  const place = sections.findIndex((one) => one.contains(document.activeElement));
  const other = place >= 0 && sections[place + (rel === "next" ? 1 : -1)];
  if (!other) return;
  sections[place].open = false;
  location.hash = other.id;
}

const PYTHON = new RegExp([
  /(?<comment>#.*)/, /(?<string>("""|''')[^]*?\3|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')/,
  /\b(?<keyword>and|as|assert|async|await|break|class|continue|def|del|elif|else|except|False|finally|for|from|global|if|import|in|is|lambda|None|nonlocal|not|or|pass|raise|return|True|try|while|with|yield)\b/,
  /\b(?<number>\d[\w.]*)/,
].map((one) => one.source).join("|"), "g");

// Colours code that can be seen, without an element for each word: files of large runs would be twice as long.
function colour() {
  if (!CSS.highlights) return;
  CSS.highlights.clear();
  for (const text of [...document.querySelectorAll("pre.code")].filter((one) => one.checkVisibility()).map((one) => one.firstChild)) {
    for (const found of text?.data.matchAll(PYTHON) ?? []) {
      const [kind] = Object.entries(found.groups).find(([, value]) => value !== undefined);
      const range = new StaticRange({ startContainer: text, startOffset: found.index, endContainer: text, endOffset: found.index + found[0].length });
      if (!CSS.highlights.has(kind)) CSS.highlights.set(kind, new Highlight());
      CSS.highlights.get(kind).add(range);
    }
  }
}

// Puts the new content in place of the old, and keeps what is open, typed and focused.
function show(fresh) {
  const old = document.querySelector("main");
  const isOpen = new Map([...old.querySelectorAll("details[id]")].map((one) => [one.id, one.open]));
  const typed = ["words", "outcome"].map((id) => [id, byId(id)?.value]);
  const focused = document.activeElement;
  const focusedIn = focused?.closest("[id]")?.id;
  const place = focused?.tagName === "BUTTON" ? focused.closest("th").cellIndex : -1;
  const scrolled = new Map([...old.querySelectorAll(".wide")].map((one) => [one.getAttribute("aria-label"), one.scrollLeft]));
  old.replaceWith(document.adoptNode(fresh));
  for (const one of fresh.querySelectorAll("details[id]")) if (isOpen.has(one.id)) one.open = isOpen.get(one.id);
  for (const [id, value] of typed) if (value !== undefined && byId(id)) byId(id).value = value;
  for (const one of fresh.querySelectorAll(".wide")) one.scrollLeft = scrolled.get(one.getAttribute("aria-label")) || 0;
  filter();
  sort();
  colour();
  const again = focusedIn && byId(focusedIn);
  const target = place >= 0 ? again?.tHead?.rows[0].cells[place]?.firstChild : again?.querySelector(":scope > summary") || again;
  if (focused && !focused.isConnected) target?.focus({ preventScroll: true });
}

async function follow() {
  const began = performance.now();
  const state = byId("state");
  try {
    const headers = { "If-None-Match": document.querySelector("main").dataset.version };
    const answer = await fetch(location.pathname, { headers, cache: "no-store" });
    if (answer.ok) show(new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main"));
    if (state.textContent) state.textContent = "";
  } catch {
    state.textContent = "The server does not answer: this is the last state that it sent.";
  }
  // A large run takes longer to send: it is asked for less often.
  setTimeout(follow, Math.max(2000, 10 * (performance.now() - began)));
}

document.addEventListener("input", (event) => { if (event.target.closest("#filter")) filter(); });
document.addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("click", (event) => {
  const head = event.target.closest("#trials th button")?.parentElement;
  if (head) sortBy(head.cellIndex);
});
addEventListener("keydown", turn);
addEventListener("hashchange", openTarget);
// The event of an opened section does not bubble.
addEventListener("toggle", colour, true);
filter();
openTarget();
colour();
if (document.querySelector("main").dataset.version) setTimeout(follow, 2000);
