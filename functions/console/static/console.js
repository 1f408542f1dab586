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

// On a narrow screen the navigation scrolls: the current section must be in sight. scrollIntoView
// would also make Tab begin there, behind the link that skips the navigation.
const section = document.querySelector(".side nav [aria-current]");
if (section) {
  const [at, nav] = [section.getBoundingClientRect(), section.parentElement.getBoundingClientRect()];
  section.parentElement.scrollLeft += at.left + at.width / 2 - nav.left - nav.width / 2;
}
