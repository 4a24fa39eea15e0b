// What stands behind one figure.
function showDetail(study, place, column) {
  const item = study.cases[place];
  const metric = column === null ? { title: "outcome", raw: [] } : study.table.columns[column];
  const cell = column === null ? outcomeOf(item) : study.table.rows[place][1][column];
  const dialog = document.getElementById("detail");
  const close = make("button", { type: "button", onclick: () => dialog.close(), autofocus: "" }, "close");
  const holder = make("div", { class: "chart", role: "img", "aria-label": "Latency samples by round" });
  const timed = metric.raw.includes("latency.v1") && stripRows(item).length > 0;
  dialog.replaceChildren(
    make("div", { class: "top" }, make("h2", { id: "detail-title" }, `${item.label}: ${metric.title}`), close),
    make("p", { class: "value" }, cell[0]), make("p", { class: "quiet" }, meaning(cell)),
    ...warningLines(item), ...noteLines(item), ...(study.table.columns.length ? [make("h3", null, "All figures of this case"), figuresOf(study, place)] : []), ...commandOf(item),
    make("h3", null, "Protocol"), facts(shared(item.protocol)),
    make("h3", null, "Axes"), facts(shared(item.axes)),
    make("h3", null, "Model and input"), facts(specWords("model", shared(item.subject))), facts(specWords("input", shared(item.workload))),
    ...environmentOf(item), ...(metric.raw.length ? [make("h3", null, "Raw samples")] : []), ...(timed ? [holder] : []), ...metric.raw.map((id) => samplesOf(item, id)),
  );
  dialog.showModal();
  dialog.scrollTop = 0;
  if (timed) strip(holder, item);
}

// How the last round of a case ended, as a cell without a figure.
function outcomeOf(item) {
  const [word, ...reason] = shared(item.rounds.at(-1)[4]).split(": ");
  return [word, null, reason.join(": ")];
}

function figuresOf(study, place) {
  const cells = study.table.rows[place][1];
  return facts(Object.fromEntries(study.table.columns.map((column, at) => [column.title, cells[at][1] === null ? `${cells[at][0]}${cells[at][2] ? `: ${cells[at][2]}` : ""}` : cells[at][0]])));
}

function meaning(cell) {
  if (cell[1] === null) return cell[2] || "not measured";
  const rounds = `${cell[3]} ${cell[3] === 1 ? "round" : "rounds"}, at least ${cell[4]} ${cell[4] === 1 ? "value" : "values"} in each`;
  return `${cell[2]}; ${rounds}`;
}

function warningLines(item) {
  return item.warnings.map((place) => make("p", { class: "bad" }, `Warning: ${shared(place)}`));
}

function noteLines(item) {
  return item.notes.map((place) => make("p", { class: "note" }, `Note: ${shared(place)}`));
}

function commandOf(item) {
  const code = make("pre", { id: "command", tabindex: "0" }, item.command);
  const copy = make("button", { type: "button", onclick: () => navigator.clipboard?.writeText(item.command).then(() => { copy.textContent = "copied"; }) }, "copy");
  return [make("h3", null, "Measure it again"), code, copy];
}

function specWords(word, spec) {
  const options = Object.keys(spec.options || {}).length ? { options: spec.options } : {};
  return { [word]: spec.name, "loaded by": spec.source ? `${spec.plugin}: ${spec.source}` : spec.plugin, ...options };
}

function environmentOf(item) {
  const places = [...new Set(item.rounds.map((round) => round[5]))].filter((place) => place >= 0);
  return [make("h3", null, "Environment"), ...(places.length ? places.map((place) => facts(shared(place))) : [make("p", { class: "quiet" }, "Nothing was recorded: the case was not measured.")]),
    make("h3", null, "Rounds"), simpleTable(["round", "order in the run", "started (UTC)", "took [s]", "outcome"], item.rounds.map((round) => [round[0] + 1, round[1], round[2].replace("T", " "), round[3], shared(round[4])]))];
}

function samplesOf(item, id) {
  const rounds = item.samples[id] || [];
  const time = id.startsWith("latency");
  const lines = rounds.map((values, place) => (values.length ? [item.rounds[place][0] + 1, values.map((value) => (time ? timeText(value) : value)).join(", ")] : null)).filter(Boolean);
  if (!lines.length) return make("p", { class: "quiet" }, `${id}: no samples`);
  const unit = data.definitions.find((one) => one[0] === id);
  const name = unit && !time && unit[1] !== "1" ? `${id} [${unit[1] === "s" ? "ns" : unit[1]}]` : id;
  return make("div", { class: "samples" }, make("h4", null, name), simpleTable(["round", "values in order"], lines));
}
