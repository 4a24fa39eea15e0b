// The sections of a study below its answer, and those of the whole page.
function chartSection(parent, owner, prefix, one) {
  if (!one.figures.length) return null;
  return section(parent, `${prefix}${one.id}`, one.title, make("p", { class: "quiet" }, ...inCode(one.text)), make("div", { class: "figures" }, ...one.figures.map((figure) => figureOf(owner, figure))));
}

function samplesSection(parent, study) {
  const able = study.cases.map((item, place) => place).filter((place) => (study.cases[place].samples["latency.v1"] || []).some((values) => values.length));
  if (!able.length) return;
  const first = able.find((place) => study.cases[place].warnings.length) ?? able[0];
  const offered = able.slice(0, 500);
  if (!offered.includes(first)) offered.unshift(first);
  const select = make("select", { class: "case", "aria-label": "Case" }, ...offered.map((place) => make("option", { value: place }, study.cases[place].label.slice(0, 120))));
  select.value = String(first);
  const holder = make("div", { class: "chart", role: "img", "aria-label": "Latency samples of the chosen case by round" });
  const words = make("figcaption", { "aria-live": "polite" });
  const redraw = () => {
    words.textContent = bandWords(study.cases[Number(select.value)]);
    return strip(holder, study.cases[Number(select.value)]);
  };
  select.addEventListener("change", redraw);
  later(study.id, redraw);
  section(parent, sectionId(study, "samples"), "Raw samples", make("p", { class: "quiet" }, "Every latency sample in the order it was taken. A slope is drift, a lone point an outlier. Each round is a new process; circles and squares alternate by round."),
    make("div", { class: "tools" }, select), make("figure", null, holder, words));
}

// Each system in one row, however it was measured; below a word the reason why it is no figure.
function lensesSection(parent, id, lenses) {
  if (!lenses) return null;
  const cell = ([text, more]) => make("span", null, text, more ? make("div", { class: "quiet" }, more) : null);
  return section(parent, id, lenses.title, make("p", { class: "quiet" }, lenses.text), simpleTable(lenses.columns, lenses.rows.map((row) => row.map(cell))),
    ...lenses.notes.map((note) => make("p", { class: "quiet" }, note)));
}

// Samples of speech, embedded in the page: nothing is fetched.
function playersSection(parent, study) {
  if (!study.players.length) return;
  const lines = study.players.flatMap((one) => one.samples.map((sample) => [one.name, make("span", null, sample.title, make("div", { class: "quiet" }, sample.text)), make("audio", { controls: "", preload: "metadata", src: sample.sound, "aria-label": `${one.name}: ${sample.title}` })]));
  section(parent, sectionId(study, "samples-of-speech"), "Samples of speech", make("p", { class: "quiet" }, "The first texts as each system spoke them in the first round."), simpleTable(["system", "text", "sound"], lines));
}

function warningLine([text, names]) {
  const more = names.length > 12 ? ` and ${names.length - 12} more` : "";
  return make("li", null, text, make("div", { class: "quiet" }, names.slice(0, 12).join(", ") + more));
}

function warningsSection(parent, study) {
  const lines = study.warnings.map(warningLine);
  if (lines.length) section(parent, sectionId(study, "warnings"), "Warnings", make("ul", null, ...lines));
}

function studyOf(study) {
  const article = make("article", { id: study.id, class: "study" }, answerOf(study));
  if (study.cases.length) {
    summary(article, study);
    for (const one of study.sections) chartSection(article, study.id, `${study.id}--`, one);
    lensesSection(article, sectionId(study, "lenses"), study.lenses);
    playersSection(article, study);
    samplesSection(article, study);
    warningsSection(article, study);
  } else {
    article.append(make("p", null, "Measure something with `speechmeter run`."));
  }
  return article;
}

function environmentsSection(parent) {
  const users = new Map();
  for (const study of data.studies) for (const item of study.cases) for (const round of item.rounds) if (round[5] >= 0) users.set(round[5], (users.get(round[5]) || new Set()).add(study.name));
  if (!users.size) return;
  const blocks = [...users].map(([place, runs]) => {
    const { fingerprint, ...rest } = shared(place);
    return make("details", null, make("summary", null, `${fingerprint} · ${rest.gpu || rest.cpu || ""} · ${[...runs].join(", ")}`), facts(rest));
  });
  section(parent, "environments", "Environments", make("p", { class: "quiet" }, "The machines and software with which the figures were measured."), ...blocks);
}

function definitionsSection(parent) {
  if (!data.definitions.length) return;
  const better = { lower: "lower", higher: "higher", neither: "–" };
  const inFull = (short, formula) => (short === formula ? short : make("div", null, short, make("details", null, make("summary", null, "in full"), formula)));
  const rows = data.definitions.map(([id, unit, title, direction, short, formula]) => [make("span", null, title, make("div", { class: "quiet" }, id)), unit, inFull(short, formula), better[direction]]);
  section(parent, "definitions", "Definitions", make("p", { class: "quiet" }, "What every metric on this page means. A changed formula gets a new version."), simpleTable(["metric", "unit", "definition", "better"], rows));
}
