// The summary of a study: folded by model where it is long, sorted by a click on a heading, filtered by words.
const PAGE_ROWS = 50;
const FOLD_FROM = 16;
const NARROW_TABLE = 450;
const UNITS = { seconds: "s" };

class Summary {
  constructor(study) {
    this.study = study;
    this.labels = study.table.labels;
    this.columns = study.table.columns;
    this.rows = this.ordered(study.table.rows.map(([labels, cells], place) => ({ labels, cells, place, text: this.textOf(labels) })));
    this.filled = 1 + this.columns.findLastIndex((_, column) => this.rows.some((row) => row.cells[column][1] !== null));
    const models = new Set(this.rows.map((row) => row.labels[0]));
    this.folds = this.rows.length > FOLD_FROM && models.size > 1;
    this.open = new Set();
    this.sort = null;
    this.down = false;
    this.words = [];
    this.outcome = "";
    this.page = 0;
    this.all = false;
    this.narrow = false;
    this.fitting = this.columns.length;
  }

  // By model, as they were measured, then by numbers: a search tries sizes in an order of its own.
  ordered(rows) {
    const models = [...new Set(rows.map((row) => row.labels[0]))];
    const numbers = (row) => [models.indexOf(row.labels[0]), ...row.labels.filter((value) => typeof value === "number")];
    const difference = (first, second) => first.map((value, place) => value - second[place]).find((one) => one) || 0;
    return rows.sort((first, second) => difference(numbers(first), numbers(second)));
  }

  // What a filter looks in: values with the names of their columns, and what all cases have in common.
  textOf(labels) {
    const named = this.labels.map((name, place) => [name, labels[place]]).concat(this.study.table.constants);
    const said = named.filter(([, value]) => value !== "" && value !== null).map(([name, value]) => [name, value, UNITS[name] ?? ""].join(" "));
    const of = Object.fromEntries(named);
    const size = "seconds" in of && "batch" in of ? `${of.seconds} s × ${of.batch}` : "";
    return ` ${[...said, size].join(" ").toLowerCase()} `.replaceAll(/\s+/g, " ");
  }

  // The rows with the words as they were typed (`batch 4`); where no row has them so, those with all of them.
  found() {
    const phrase = this.rows.filter((row) => has(row.text, this.words.join(" ")));
    return phrase.length ? phrase : this.rows.filter((row) => this.words.every((word) => has(row.text, word)));
  }

  // The columns beside the figures. On a phone without the outcome: the words in place of figures say it.
  get told() {
    return this.narrow && this.labels.at(-1) === "outcome" ? this.labels.slice(0, -1) : this.labels;
  }

  get outcomes() {
    return this.labels.at(-1) === "outcome" ? [...new Set(this.rows.map((row) => row.labels.at(-1)))] : [];
  }

  chosen() {
    const kept = this.found().filter((row) => !this.outcome || row.labels.at(-1) === this.outcome);
    if (this.sort === null) return kept;
    const count = this.labels.length;
    const key = (row) => (this.sort < count ? row.labels[this.sort] : row.cells[this.sort - count][1]);
    return kept.sort((first, second) => this.compare(key(first), key(second)));
  }

  compare(first, second) {
    const missing = (value) => value === null || value === undefined || value === "";
    if (missing(first) || missing(second)) return missing(first) - missing(second);
    const order = typeof first === "number" && typeof second === "number" ? first - second : String(first).localeCompare(String(second), undefined, { numeric: true });
    return this.down ? -order : order;
  }

  // Lines of the table: cases, or one for each model with its cases below while it is open.
  lines(rows) {
    if (!this.folds || this.sort !== null || this.words.length || this.outcome) return rows.map((row) => ({ row }));
    const groups = new Map();
    for (const row of rows) groups.set(row.labels[0], [...(groups.get(row.labels[0]) || []), row]);
    return [...groups].flatMap(([model, own]) => [{ model, own }, ...(this.open.has(model) ? own.map((row) => ({ row, inside: true })) : [])]);
  }

  heading(title, place, kind) {
    const sorted = this.sort === place ? (this.down ? "descending" : "ascending") : "none";
    const arrow = { ascending: " ▲", descending: " ▼", none: "" }[sorted];
    const button = make("button", { type: "button", "data-column": place, onclick: () => this.sortBy(place) }, title + arrow);
    return make("th", { scope: "col", "aria-sort": sorted, class: kind }, button);
  }

  sortBy(place) {
    this.down = this.sort === place ? !this.down : false;
    this.sort = place;
    this.page = 0;
    this.fill();
    this.element.querySelector(`[data-column="${place}"]`).focus();
  }

  labelCell(value, place, row) {
    if (typeof value === "number") return make("td", { class: "label number" }, String(value));
    if (this.labels[place] === "outcome" && value !== "ok") {
      const open = () => showDetail(this.study, row.place, null);
      return make("td", { class: value === "skipped" ? "label quiet" : "label bad" }, make("button", { type: "button", title: "why, and how to measure it again", onclick: open }, value));
    }
    return make("td", { class: "label" }, make("span", { class: "clamp", title: value }, value));
  }

  figureCell(cell, row, column) {
    const open = () => showDetail(this.study, row.place, column);
    return make("td", { class: "figure" }, make("button", { type: "button", class: cell[1] === null ? "none" : "", title: cell[2], onclick: open }, cell[0]));
  }

  line({ row, model, own, inside }) {
    if (row) return make("tr", { class: inside ? "inside" : null }, ...this.told.map((_, place) => this.labelCell(row.labels[place], place, row)), ...row.cells.slice(0, this.shown).map((cell, column) => this.figureCell(cell, row, column)));
    const toggle = () => {
      if (!this.open.delete(model)) this.open.add(model);
      this.fill();
    };
    const isOpen = this.open.has(model);
    const button = make("button", { type: "button", "aria-expanded": String(isOpen), onclick: toggle }, make("span", { class: "clamp", title: model }, model), make("span", { class: "quiet" }, `${own.length} ${own.length === 1 ? "case" : "cases"}`));
    const ranges = this.columns.slice(0, this.shown).map((_, column) => make("td", { class: "figure range" }, rangeOf(own.map((one) => one.cells[column]))));
    return make("tr", { class: "group" }, make("th", { scope: "row", colspan: this.told.length }, button), ...ranges);
  }

  get shown() {
    return this.all ? this.columns.length : this.fitting;
  }

  fill() {
    const rows = this.chosen();
    const lines = this.lines(rows);
    const pages = Math.max(1, Math.ceil(lines.length / PAGE_ROWS));
    this.page = Math.min(this.page, pages - 1);
    const count = this.labels.length;
    const head = make("tr", null, ...this.told.map((title, place) => this.heading(title, place, "label")),
      ...this.columns.slice(0, this.shown).map((column, place) => this.heading(column.title, count + place, "figure")));
    const body = lines.slice(this.page * PAGE_ROWS, (this.page + 1) * PAGE_ROWS).map((one) => this.line(one));
    const find = (name) => this.element.querySelector(name);
    const none = make("tr", null, make("td", { colspan: this.told.length + this.shown }, "No case has all of these words."));
    find("table").replaceChildren(make("thead", null, head), make("tbody", null, ...(body.length ? body : [none])));
    find(".count").textContent = rows.length === this.rows.length ? `${rows.length} ${rows.length === 1 ? "case" : "cases"}` : `${rows.length} of ${this.rows.length} cases`;
    find(".place").textContent = `page ${this.page + 1} of ${pages}`;
    find(".pages").hidden = pages === 1;
    const left = this.columns.length - this.fitting;
    find(".wider").hidden = left < 1;
    find(".wider").textContent = this.all ? "fewer figures" : `${left} more ${left === 1 ? "figure" : "figures"}`;
  }

  // As many figures as fit: the most important ones are first.
  fit() {
    const frame = this.element.querySelector(".scroll");
    if (!frame.clientWidth) return;
    this.narrow = frame.clientWidth < NARROW_TABLE;
    this.fitting = this.filled; // columns without any figure are the last, and shown when they are asked for
    this.fill();
    const edge = frame.getBoundingClientRect().left + frame.clientWidth + 1;
    const fitting = [...frame.querySelectorAll("thead th.figure")].filter((one) => one.getBoundingClientRect().right <= edge).length;
    if (fitting < this.filled) {
      this.fitting = Math.max(1, fitting);
      this.fill();
    }
  }

  // The row of a case and the column of a figure, whatever was folded, sorted, filtered or left out before.
  reveal(place, metric) {
    const row = this.rows.find((one) => one.place === place);
    this.clear();
    this.open.add(row.labels[0]);
    this.all = this.all || this.columns.findIndex((column) => column.id === metric) >= this.fitting;
    const at = this.lines(this.chosen()).findIndex((one) => one.row === row);
    this.page = Math.floor(Math.max(0, at) / PAGE_ROWS);
    this.fill();
    const lines = [...this.element.querySelectorAll("tbody tr")];
    lines[at % PAGE_ROWS]?.classList.add("revealed");
  }

  clear() {
    Object.assign(this, { sort: null, words: [], outcome: "" });
    for (const one of this.element.querySelectorAll(".tools input, .tools select")) one.value = "";
  }

  turn(step) {
    this.page = Math.max(0, this.page + step);
    this.fill();
  }

  tools() {
    const changed = () => {
      this.page = 0;
      this.fill();
    };
    const search = make("input", { type: "search", class: "filter", placeholder: "filter by model, device, size …", "aria-label": "Filter the table" });
    search.addEventListener("input", () => {
      this.words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      changed();
    });
    const select = make("select", { class: "outcome", "aria-label": "Outcome" }, make("option", { value: "" }, "all outcomes"), ...this.outcomes.map((one) => make("option", { value: one }, one)));
    select.addEventListener("change", () => {
      this.outcome = select.value;
      changed();
    });
    const wider = make("button", { type: "button", class: "wider", onclick: () => { this.all = !this.all; this.fill(); } });
    return make("div", { class: "tools" }, this.rows.length > 6 ? search : null, this.outcomes.length > 1 ? select : null, make("span", { class: "count quiet", "aria-live": "polite" }), wider);
  }
}

// Whether a text has some words; a number is a whole one: `8` is not `80`.
function has(text, words) {
  return text.includes(`${/^[\d.]/.test(words) ? " " : ""}${words}${/[\d.]$/.test(words) ? " " : ""}`);
}

// From the least to the largest figure of some cells, without their intervals.
function rangeOf(cells) {
  const known = cells.filter((cell) => cell[1] !== null).sort((first, second) => first[1] - second[1]);
  if (!known.length) return cells[0]?.[0] ?? "";
  const ends = [known[0], known.at(-1)].map((cell) => cell[0].split(" ±")[0].split(" [")[0].replaceAll(" ", "\u00a0"));
  return ends[0] === ends[1] ? ends[0] : `${ends[0]} – ${ends[1]}`;
}

function summary(parent, study) {
  const table = new Summary(study);
  const constants = study.table.constants.map(([name, value]) => `${name} ${value}`).join(" · ");
  const pages = make("div", { class: "tools pages" }, make("button", { type: "button", onclick: () => table.turn(-1) }, "previous"),
    make("span", { class: "place quiet" }), make("button", { type: "button", onclick: () => table.turn(1) }, "next"));
  table.element = section(parent, sectionId(study, "summary"), "Summary", make("p", { class: "quiet" }, study.table.text),
    constants ? make("p", { class: "quiet constants" }, make("b", null, "In every case: "), constants) : null,
    table.tools(), make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Summary table of ${study.name}` }, make("table")), pages);
  table.element.classList.add("summary");
  table.fill();
  study.reveal = (place, metric) => table.reveal(place, metric);
  let width = 0;
  const refit = () => {
    const now = table.element.clientWidth;
    if (now && now !== width && !table.all) {
      width = now;
      table.fit();
    }
  };
  addEventListener("resize", refit);
}
