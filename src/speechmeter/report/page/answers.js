// What a study found, before anything else: a sentence, large figures with their intervals, links to the evidence.
const sectionId = (study, name) => `${study.id}--${name}`;

// A number and its unit stay in one line.
const tight = (text) => text.replace(/(\d) (\p{L}+|%|×)(?=$|[\s,;)])/gu, "$1\u00a0$2").replace(/× (?=\d)/g, "×\u00a0");

function findingOf(study, one) {
  const open = one.case === null ? null : () => showDetail(study, one.case, Math.max(0, study.table.columns.findIndex((column) => column.id === one.metric)));
  const figure = [make("span", { class: "number" }, one.value), one.unit ? make("span", { class: "unit" }, ` ${one.unit}`) : null];
  return make("div", { class: "finding" },
    open ? make("button", { type: "button", class: "value", title: "protocol, environment, raw samples", onclick: open }, ...figure.filter(Boolean)) : make("p", { class: "value" }, ...figure.filter(Boolean)),
    make("p", { class: "interval" }, tight(one.interval)),
    make("p", { class: "about" }, make("b", { class: "name", title: one.name }, one.name), make("span", null, tight(one.label))),
    one.warning ? make("p", { class: "more warned" }, tight(`Warning: ${one.warning}`)) : null,
    one.next ? make("p", { class: "more" }, tight(one.next)) : null,
    make("p", { class: "more evidence" }, evidenceOf(study, one)));
}

// A link to what shows the figure; the table opens at its row.
function evidenceOf(study, one) {
  const open = one.section === "summary" && one.case !== null ? () => study.reveal?.(one.case, one.metric) : null;
  return make("a", { href: `${study.page ?? ""}#${sectionId(study, one.section)}`, ...(open ? { onclick: open } : {}) }, one.evidence);
}

function findingsOf(study) {
  return make("div", { class: "findings" }, ...study.findings.map((one) => findingOf(study, one)));
}

function notesOf(study) {
  if (!study.notes.length) return null;
  const [first, ...rest] = study.notes;
  if (!rest.length) return make("p", { class: "note", role: "note" }, first);
  const count = `${study.notes.length} notes on models and input`;
  return make("details", { class: "notes" }, make("summary", null, count), ...study.notes.map((note) => make("p", { class: "note", role: "note" }, note)));
}

function answerOf(study) {
  const figures = study.compared.map((one) => figureOf(study.id, one, sectionId(study, one.id)));
  return make("div", { class: "answer" },
    make("h2", { class: "study-name" }, study.name), make("p", { class: "headline" }, study.headline), findingsOf(study),
    ...study.doubts.map((doubt) => make("p", { class: "doubt" }, ...inCode(doubt))),
    make("p", { class: "quiet facts" }, study.about.join(" · ")), notesOf(study),
    figures.length ? make("div", { class: figures.length > 1 ? "figures compared" : "figures compared alone" }, ...figures) : null);
}

// A study beside others: what it is called leads to it.
function cardOf(study) {
  return make("div", { class: "card" },
    make("h3", null, make("a", { href: study.page ?? `#${study.id}`, title: study.name }, study.name)), make("p", { class: "headline" }, study.headline), findingsOf(study));
}

function overview() {
  return make("section", { id: "studies", "aria-label": "All studies" }, make("h2", { class: "study-name" }, `${data.studies.length} studies`), make("div", { class: "cards" }, ...data.studies.map(cardOf)));
}
