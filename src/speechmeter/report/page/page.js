// The page from top to bottom.
function runsLine() {
  for (const run of data.runs) {
    const counts = Object.entries(run.counts).map(([status, count]) => `${count} ${status}`).join(", ") || "no records";
    const text = [run.name, run.devices.join(", "), `${run.cases} cases`, run.rounds && `${run.rounds} each`, `records: ${counts}`, run.started && `started ${run.started} UTC`];
    document.getElementById("main").append(make("p", { class: "quiet" }, text.filter(Boolean).join(" · ")), ...run.notes.map((note) => make("p", { class: "note", role: "note" }, note)));
  }
}

function samplesSection() {
  const able = data.cases.map((item, place) => place).filter((place) => (data.cases[place].samples["latency.v1"] || []).some((values) => values.length));
  if (!able.length) return;
  const first = able.find((place) => data.cases[place].warnings.length) ?? able[0];
  const offered = able.slice(0, 500);
  if (!offered.includes(first)) offered.unshift(first);
  const several = data.runs.length > 1;
  const name = (item) => (several ? `${item.run}: ${item.label}` : item.label);
  const select = make("select", { id: "case", "aria-label": "Case" }, ...offered.map((place) => make("option", { value: place }, name(data.cases[place]).slice(0, 120))));
  select.value = String(first);
  const holder = make("div", { class: "chart", role: "img", "aria-label": "Latency samples of the chosen case by round" });
  const redraw = () => strip(holder, data.cases[Number(select.value)]);
  select.addEventListener("change", redraw);
  queue.push(redraw);
  section("samples", "Raw samples", make("p", { class: "quiet" }, "Every latency sample in the order it was taken. A slope is drift, a lone point an outlier; rounds are fresh processes."),
    make("div", { class: "tools" }, select), make("figure", null, holder));
}

// Warnings that differ in a percentage alone are one, with the least and the most of it.
function gathered() {
  const about = new Map();
  for (const item of data.cases) {
    for (const text of item.warnings.map(shared)) {
      const key = text.replace(/\d+%/g, "%");
      const one = about.get(key) || { text, shares: [], labels: new Set() };
      one.shares.push(...(text.match(/\d+(?=%)/g) || []).map(Number));
      one.labels.add(item.label);
      about.set(key, one);
    }
  }
  return [...about.values()];
}

function warningLine({ text, shares, labels }) {
  const [least, most] = [Math.min(...shares), Math.max(...shares)];
  const range = shares.length && least < most ? text.replace(/\d+%/, `${least}% to ${most}%`) : text;
  const names = [...labels];
  const more = names.length > 12 ? ` and ${names.length - 12} more` : "";
  return make("li", null, range, make("div", { class: "quiet" }, names.slice(0, 12).join(", ") + more));
}

function warningsSection() {
  const lines = gathered().map(warningLine);
  if (lines.length) section("warnings", "Warnings", make("ul", null, ...lines));
}

function environmentsSection() {
  const users = new Map();
  for (const item of data.cases) for (const round of item.rounds) if (round[5] >= 0) users.set(round[5], (users.get(round[5]) || new Set()).add(item.run));
  if (!users.size) return;
  const blocks = [...users].map(([place, runs]) => {
    const { fingerprint, ...rest } = shared(place);
    return make("details", null, make("summary", null, `${fingerprint} · ${rest.gpu || rest.cpu || ""} · ${[...runs].join(", ")}`), facts(rest));
  });
  section("environments", "Environments", make("p", { class: "quiet" }, "Where the figures were taken, each environment once."), ...blocks);
}

function definitionsSection() {
  const better = { lower: "lower is better", higher: "higher is better", neither: "" };
  const inFull = (short, formula) => (short === formula ? short : make("div", null, short, make("details", null, make("summary", null, "in full"), formula)));
  const rows = data.definitions.map(([id, unit, title, direction, short, formula]) => [id, title, unit, inFull(short, formula), better[direction]]);
  section("definitions", "Definitions", make("p", { class: "quiet" }, "What every metric on this page means. A changed formula gets a new version."), simpleTable(["metric", "name", "unit", "definition", ""], rows));
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

themes();
runsLine();
if (data.cases.length) {
  summary();
  for (const one of data.sections) section(one.id, one.title, make("p", { class: "quiet" }, one.text), make("div", { class: "figures" }, ...one.figures.map(figureOf)));
  samplesSection();
  warningsSection();
  environmentsSection();
  definitionsSection();
} else {
  document.getElementById("main").append(make("p", null, "There are no records yet: measure something with `speechmeter run`."));
}
document.getElementById("main").append(make("p", { class: "quiet" }, `Made by Speechmeter ${data.version}. This file is complete: it loads nothing.`));
drawAll();
