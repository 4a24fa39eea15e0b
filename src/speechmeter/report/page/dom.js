// Elements are made by hand and text goes in as text: nothing from a record is ever read as HTML.
const data = JSON.parse(document.getElementById("data").textContent);
const shared = (place) => (place < 0 ? {} : data.shared[place]);

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// Text in which what stands between backticks is to be typed.
function inCode(text) {
  return text.split("`").map((part, place) => (place % 2 ? make("code", null, part) : part));
}

function plain(value) {
  if (value === null || value === undefined) return "–";
  if (Array.isArray(value)) return value.map(plain).join(", ") || "none";
  if (typeof value === "object") return Object.entries(value).map(([key, one]) => `${key} ${plain(one)}`).join(", ") || "none";
  return String(value);
}

function facts(values) {
  const list = make("dl");
  for (const [name, value] of Object.entries(values)) list.append(make("dt", null, name), make("dd", null, plain(value)));
  return list;
}

function simpleTable(headings, rows) {
  const head = make("tr", null, ...headings.map((heading) => make("th", { scope: "col" }, heading)));
  const lines = rows.map((row) => make("tr", null, ...row.map((cell) => make("td", null, cell instanceof Node ? cell : plain(cell)))));
  return make("div", { class: "scroll", tabindex: "0" }, make("table", null, make("thead", null, head), make("tbody", null, ...lines)));
}

// A section of the page or of a study: `parent` gets it, and the contents a link to it.
function section(parent, id, title, ...children) {
  const made = make("section", { id, "aria-labelledby": `${id}--title` }, make("h3", { id: `${id}--title` }, title), ...children);
  parent.append(made);
  return made;
}


function themes() {
  const button = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const apply = (name) => {
    document.documentElement.dataset.theme = name;
    button.textContent = name === "dark" ? "light" : "dark";
    button.setAttribute("aria-label", `Switch to ${button.textContent} colours`);
  };
  apply(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => apply(dark.matches ? "dark" : "light"));
  button.addEventListener("click", () => apply(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
}
