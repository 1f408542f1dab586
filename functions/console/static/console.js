// What pages do beside htmx. Everything works without it, one click later.
"use strict";

// A slider shows its value while it moves: <output for="ID"> follows <input id="ID">.
document.addEventListener("input", (event) => {
  const shown = event.target.id && document.querySelector(`output[for="${CSS.escape(event.target.id)}"]`);
  if (shown) shown.textContent = event.target.value;
});

// A slider and the number beside it have one value: data-with is the id of the other. The number's
// output says how far it is from data-was.
document.addEventListener("input", (event) => {
  const other = event.target.dataset.with && document.getElementById(event.target.dataset.with);
  if (!other || event.target.value === "") return;
  other.value = event.target.value;
  const number = event.target.type === "number" ? event.target : other;
  const shown = document.querySelector(`output[for="${CSS.escape(number.id)}"]`);
  const change = Math.round(number.value - shown?.dataset.was);
  if (shown) shown.textContent = change > 0 ? `+${change}` : change < 0 ? `−${-change}` : "";
});

// A field with data-filter hides the rows of a list whose names lack its text. It sends nothing.
for (const field of document.querySelectorAll("input[data-filter]")) {
  const list = document.getElementById(field.dataset.filter);
  field.parentElement.hidden = false;
  field.addEventListener("input", (event) => {
    event.stopPropagation();
    const wanted = field.value.trim().toLowerCase();
    for (const group of list.querySelectorAll("details")) if (wanted) group.open = true;
    for (const row of list.querySelectorAll(".score")) row.hidden = !row.querySelector("label").textContent.toLowerCase().includes(wanted);
  });
  field.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
}

// A form with data-confirm asks before it is sent. A form that changes something is sent once until
// its page is shown again; those that htmx sends come here prevented. Buttons stay enabled, because
// the form is sent with the name of the one that was pressed.
const sent = new Set();
document.addEventListener("submit", (event) => {
  const form = event.target, question = form.dataset.confirm;
  if (event.defaultPrevented || form.method !== "post") return;
  if (sent.has(form) || question && !window.confirm(question)) event.preventDefault();
  else sent.add(form);
});
window.addEventListener("pageshow", () => sent.clear());

// While nothing answers, a banner says so, and hints that ask for the next step are hidden. Each
// second the page looks whether the console is there, and then asks again what was not answered. A
// page of the console that says what went wrong is an answer; one of a proxy before it is not.
const away = document.getElementById("away"), unanswered = new Map();
let leaves = false; // requests of a page that is being left end without an answer
window.addEventListener("pagehide", () => { leaves = true; });
window.addEventListener("pageshow", () => { leaves = false; });
function gone({ elt, requestConfig }) {
  if (!away || leaves) return;
  unanswered.set(elt, requestConfig);
  if (!away.hidden) return;
  away.hidden = false;
  document.body.classList.add("is-away");
  look();
}
function look() {
  setTimeout(() => fetch("/", { method: "HEAD" }).then((answer) => answer.status < 500 ? back() : look(), look), 1000);
}
function back() {
  away.hidden = true;
  document.body.classList.remove("is-away");
  const all = [...unanswered];
  unanswered.clear();
  for (const [elt, asked] of all) if (elt.isConnected) htmx.ajax(asked.verb, asked.path, { source: elt, target: asked.target });
}
document.addEventListener("htmx:sendError", (event) => gone(event.detail));
document.addEventListener("htmx:timeout", (event) => gone(event.detail));
document.addEventListener("htmx:beforeSwap", (event) => {
  const { xhr } = event.detail;
  if (xhr.status < 502 || xhr.getResponseHeader("Cross-Origin-Opener-Policy")) return;
  event.detail.shouldSwap = false;
  gone(event.detail);
});

// A request that takes long has a banner of its own: the engine may hang.
const slow = document.getElementById("slow"), waiting = new Map();
document.addEventListener("htmx:beforeRequest", ({ detail }) => {
  if (slow) waiting.set(detail.xhr, setTimeout(() => { slow.hidden = leaves; }, slow.dataset.after));
});
document.addEventListener("htmx:afterRequest", ({ detail }) => {
  clearTimeout(waiting.get(detail.xhr));
  waiting.delete(detail.xhr);
  if (slow && waiting.size === 0) slow.hidden = true;
});

// The live tail stands still while it is paused, scrolled down, or has the focus.
const tail = document.getElementById("tail"), pause = document.getElementById("tail-pause");
if (tail && pause) {
  let paused = false;
  const still = () => paused || tail.contains(document.activeElement) || tail.querySelector(".scroll")?.scrollTop > 0;
  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Go on" : "Pause";
  });
  tail.addEventListener("htmx:beforeRequest", (event) => { if (still()) event.preventDefault(); });
  tail.addEventListener("htmx:beforeSwap", (event) => { if (still()) event.detail.shouldSwap = false; });
}

// On a narrow screen the rows of wide tables are cards, whose cells have the names of their columns.
function label(within) {
  for (const table of within.querySelectorAll(".scroll > table:not(.user-pair), table.user-adds")) {
    const names = [...table.querySelectorAll("thead th")].map((th) => th.textContent.trim());
    if (names.length < 3) continue;
    table.classList.add("cards-narrow");
    for (const row of table.querySelectorAll("tbody tr, tfoot tr")) {
      let at = 0;
      for (const cell of row.cells) {
        cell.dataset.label = names[at] ?? "";
        at += cell.colSpan;
      }
    }
  }
}
label(document);
document.addEventListener("htmx:load", (event) => label(event.detail.elt.parentElement ?? document));

// On a narrow screen the navigation scrolls: the current section must be in sight. scrollIntoView
// would also make Tab begin there, behind the link that skips the navigation.
const section = document.querySelector(".side nav [aria-current]");
if (section) {
  const [at, nav] = [section.getBoundingClientRect(), section.parentElement.getBoundingClientRect()];
  section.parentElement.scrollLeft += at.left + at.width / 2 - nav.left - nav.width / 2;
}
