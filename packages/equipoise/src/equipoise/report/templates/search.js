// Search of the index: hides the lines that lack one of the words, and shows lines of the lists that
// have all words. These lines are in a script of the site, which is loaded for the first search.
(() => {
"use strict";
const MAX_SHOWN = 200;
const form = document.getElementById("search");
const input = document.getElementById("words");
const matches = document.getElementById("matches");
const lines = [...document.querySelectorAll(".lines li")];
const sections = [...document.querySelectorAll("main section:not(#listed-section)")];
const pagers = [...document.querySelectorAll(".pager")];
const listedCount = Number(form.dataset.count || 0);
let texts = null;
let listedTexts = listedCount ? null : [];
let isRequested = false;

function requestListedLines() {
  if (isRequested || listedTexts) {
    return;
  }
  isRequested = true;
  const script = document.createElement("script");
  script.src = form.dataset.lines;
  script.addEventListener("load", () => {
    listedTexts = globalThis.listedLines.map(([text, , facts]) => `${text} ${facts}`.toLowerCase());
    show();
  });
  document.body.append(script);
}

function listItem([text, page, facts, tone]) {
  const item = document.createElement("li");
  const title = document.createElement(page ? "a" : "b");
  const details = document.createElement("span");
  title.textContent = text;
  if (page) {
    title.href = page;
  }
  details.textContent = facts;
  item.className = tone || "";
  item.append(title, details);
  return item;
}

// Shows the first lines of the lists with all words; returns the number of all of them.
function showListedLines(words) {
  if (!listedCount) {
    return 0;
  }
  const found = [];
  if (words.length) {
    listedTexts.forEach((text, number) => {
      if (words.every((word) => text.includes(word))) {
        found.push(globalThis.listedLines[number]);
      }
    });
  }
  document.getElementById("listed-lines").replaceChildren(...found.slice(0, MAX_SHOWN).map(listItem));
  document.getElementById("listed-section").hidden = !found.length;
  return found.length;
}

function show() {
  texts ??= lines.map((line) => line.textContent.toLowerCase());
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length && !listedTexts) {
    requestListedLines();
    matches.textContent = "searching …";
    return;
  }
  let count = 0;
  lines.forEach((line, number) => {
    const isMatch = words.every((word) => texts[number].includes(word));
    line.hidden = !isMatch;
    count += isMatch;
  });
  for (const section of sections) {
    section.hidden = !section.querySelector("li:not([hidden])");
  }
  for (const pager of pagers) {
    pager.hidden = words.length > 0;
  }
  const listed = showListedLines(words);
  const total = `${count + listed} of ${lines.length + listedCount} lines`;
  const limit = listed > MAX_SHOWN ? `; of more pages, the first ${MAX_SHOWN}` : "";
  matches.textContent = words.length ? total + limit : "";
}

form.hidden = false;
form.addEventListener("submit", (event) => event.preventDefault());
input.addEventListener("input", show);
// The browser may keep the words when the reader comes back.
if (input.value) {
  show();
}
})();
