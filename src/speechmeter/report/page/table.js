// The summary: sorted by a click on a heading, filtered by words, fifty rows at a time.
const PAGE_ROWS = 50;
const state = { sort: null, down: false, words: [], outcome: "", page: 0 };

const rowsOfAll = data.table.rows.map(([labels, cells], place) => ({ labels, cells, place, text: labels.join(" ").toLowerCase() }));

function chosenRows() {
  const last = data.table.labels.length - 1;
  const kept = rowsOfAll.filter((row) => state.words.every((word) => row.text.includes(word)) && (!state.outcome || row.labels[last] === state.outcome));
  if (state.sort === null) return kept;
  const count = data.table.labels.length;
  const key = (row) => (state.sort < count ? row.labels[state.sort] : row.cells[state.sort - count][1]);
  return kept.sort((first, second) => compare(key(first), key(second)));
}

function compare(first, second) {
  const missing = (value) => value === null || value === undefined || value === "";
  if (missing(first) || missing(second)) return missing(first) - missing(second);
  const order = typeof first === "number" && typeof second === "number" ? first - second : String(first).localeCompare(String(second), undefined, { numeric: true });
  return state.down ? -order : order;
}

function heading(title, place, kind) {
  const sorted = state.sort === place ? (state.down ? "descending" : "ascending") : "none";
  const arrow = { ascending: " ▲", descending: " ▼", none: "" }[sorted];
  const button = make("button", { type: "button", "data-column": place, onclick: () => sortBy(place) }, title + arrow);
  return make("th", { scope: "col", "aria-sort": sorted, class: kind }, button);
}

function sortBy(place) {
  state.down = state.sort === place ? !state.down : false;
  state.sort = place;
  state.page = 0;
  fillTable();
  document.querySelector(`#summary [data-column="${place}"]`).focus();
}

function labelCell(value, place) {
  const last = place === data.table.labels.length - 1;
  if (typeof value === "number") return make("td", { class: "figure" }, String(value));
  const text = make("span", { class: "clamp", title: value }, value);
  return make("td", { class: last && value !== "ok" ? "bad" : "name" }, text);
}

function figureCell(cell, row, column) {
  const known = cell[1] !== null;
  const title = cell[2];
  const open = () => showDetail(row.place, column);
  return make("td", { class: "figure" }, make("button", { type: "button", class: known ? "" : "none", title, onclick: open }, cell[0]));
}

function bodyRow(row) {
  return make("tr", null, ...row.labels.map(labelCell), ...row.cells.map((cell, column) => figureCell(cell, row, column)));
}

function fillTable() {
  const rows = chosenRows();
  const pages = Math.max(1, Math.ceil(rows.length / PAGE_ROWS));
  state.page = Math.min(state.page, pages - 1);
  const shown = rows.slice(state.page * PAGE_ROWS, (state.page + 1) * PAGE_ROWS);
  const count = data.table.labels.length;
  const head = make("tr", null, ...data.table.labels.map((title, place) => heading(title, place, "")),
    ...data.table.columns.map((column, place) => heading(column.title, count + place, "figure")));
  document.querySelector("#summary table").replaceChildren(make("thead", null, head), make("tbody", null, ...shown.map(bodyRow)));
  document.getElementById("count").textContent = rows.length === rowsOfAll.length ? `${rows.length} cases` : `${rows.length} of ${rowsOfAll.length} cases`;
  document.getElementById("place").textContent = `page ${state.page + 1} of ${pages}`;
  document.getElementById("pages").hidden = pages === 1;
}

function turn(step) {
  state.page = Math.max(0, state.page + step);
  fillTable();
}

function filters() {
  const search = make("input", { type: "search", id: "filter", placeholder: "filter by model, device, size …", "aria-label": "Filter the table" });
  search.addEventListener("input", () => {
    state.words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    state.page = 0;
    fillTable();
  });
  const last = data.table.labels.length - 1;
  const outcomes = [...new Set(rowsOfAll.map((row) => row.labels[last]))];
  const select = make("select", { id: "outcome", "aria-label": "Outcome" }, make("option", { value: "" }, "all outcomes"), ...outcomes.map((one) => make("option", { value: one }, one)));
  select.addEventListener("change", () => {
    state.outcome = select.value;
    state.page = 0;
    fillTable();
  });
  return make("div", { class: "tools" }, search, outcomes.length > 1 ? select : null, make("span", { id: "count", class: "quiet", "aria-live": "polite" }));
}

function summary() {
  const pages = make("div", { class: "tools", id: "pages" }, make("button", { type: "button", onclick: () => turn(-1) }, "previous"),
    make("span", { id: "place", class: "quiet" }), make("button", { type: "button", onclick: () => turn(1) }, "next"));
  section("summary", "Summary", make("p", { class: "quiet" }, data.table.text),
    filters(), make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Summary table" }, make("table")), pages);
  fillTable();
}
