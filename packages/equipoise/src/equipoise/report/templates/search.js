// Search of the index: hides the lines that lack one of the words. The page makes no request.
(() => {
"use strict";
const form = document.getElementById("search");
const input = document.getElementById("words");
const matches = document.getElementById("matches");
const lines = [...document.querySelectorAll(".lines li")];
let texts = null;

function show() {
  texts ??= lines.map((line) => line.textContent.toLowerCase());
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  lines.forEach((line, number) => {
    const isMatch = words.every((word) => texts[number].includes(word));
    line.hidden = !isMatch;
    count += isMatch;
  });
  for (const section of document.querySelectorAll("main section")) {
    section.hidden = !section.querySelector("li:not([hidden])");
  }
  matches.textContent = words.length ? `${count} of ${lines.length} lines` : "";
}

form.hidden = false;
form.addEventListener("submit", (event) => event.preventDefault());
input.addEventListener("input", show);
// The browser may keep the words when the reader comes back.
if (input.value) {
  show();
}
})();
