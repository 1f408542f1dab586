// What pages do beside htmx. Everything works without it, one click later.
"use strict";

// A slider shows its value while it moves: <output for="ID"> follows <input id="ID">.
document.addEventListener("input", (event) => {
  const shown = event.target.id && document.querySelector(`output[for="${CSS.escape(event.target.id)}"]`);
  if (shown) shown.textContent = event.target.value;
});

// A form with data-confirm asks before it is sent.
document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});

// On a narrow screen the navigation scrolls: the current section must be in sight.
document.querySelector(".side nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
