// Charts: specifications come with the data; colours are the style sheet's, so that a change of theme needs no redrawing.
// What is still to be drawn, by the study it belongs to: a chart without a place on the screen has no width.
const queues = new Map();
function later(owner, job) {
  queues.set(owner, [...(queues.get(owner) || []), job]);
}
const NARROW = 520;

function lookFor(width) {
  const config = structuredClone(data.config);
  config.legend.symbolLimit = 0; // all of them: without it Vega leaves some out and complains
  if (width < NARROW) {
    config.axis.labelLimit = Math.round(width * 0.38);
    config.legend.columns = 1;
    config.legend.labelLimit = width - 60;
  }
  return config;
}

async function draw(holder, spec) {
  const whole = { ...spec, width: "container", autosize: { type: "fit-x", contains: "padding" } };
  const options = { mode: "vega-lite", actions: false, renderer: "svg", config: lookFor(holder.clientWidth), tooltip: { theme: "custom" }, ast: true };
  try {
    const result = await vegaEmbed(holder, whole, options);
    holder.view = result.view;
  } catch (error) {
    holder.textContent = `This chart cannot be drawn: ${error.message}`;
  }
}

function resolved(svg) {
  const style = getComputedStyle(document.documentElement);
  return svg.replace(/var\((--\w+)\)/g, (_, name) => style.getPropertyValue(name).trim());
}

async function save(holder, title) {
  const svg = resolved(await holder.view.toSVG());
  const link = make("a", { href: URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" })), download: `${title.replace(/[^\w.-]+/g, "-").slice(0, 80)}.svg` });
  link.click();
  URL.revokeObjectURL(link.href);
}

function valuesOf(one) {
  const details = make("details", null, make("summary", null, "figures as a table"));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) {
      const rows = one.spec.data.values.map((row) => one.columns.map(([field]) => row[field] ?? ""));
      details.append(simpleTable(one.columns.map(([, heading]) => heading), rows));
    }
  });
  return details;
}

// A sentence begins with a capital letter, a name of a model as it is written.
function started(text) {
  return /^[^ ]*[-_\d:,]/.test(text) ? text : `${text[0].toUpperCase()}${text.slice(1)}`;
}

function figureOf(owner, one, id = null) {
  const caveats = one.caveats.map((caveat) => `${started(caveat)}.`).join(" ");
  const holder = make("div", { class: "chart", role: "img", "aria-label": `${one.title}. ${one.caption} ${caveats}` });
  const saver = make("button", { type: "button", onclick: () => save(holder, one.title) }, "save as SVG");
  later(owner, () => draw(holder, one.spec));
  return make("figure", { id }, make("h4", { title: one.title }, one.title), holder,
    make("figcaption", null, one.caption, caveats ? make("p", { class: "caveats", tabindex: "0", title: caveats.replaceAll("`", "") }, ...inCode(caveats)) : null),
    make("div", { class: "tools" }, valuesOf(one), saver));
}

function stripRows(item) {
  const rounds = item.samples["latency.v1"] || [];
  let order = 0;
  const rows = rounds.flatMap((values, place) => values.map((value) => ({ order: (order += 1), round: item.rounds[place][0] + 1, turn: place % 2 ? "even" : "odd", value: value * 1e-9, text: timeText(value) })));
  return rows.length && item.steady ? [...rows, band(rows.map((row) => row.value), item.steady)] : rows;
}

// What the line and the band behind the samples are; the band is drawn as far as the samples reach.
function bandWords(item) {
  if (!item.steady) return "";
  const [mean, low, high] = item.steady.map((value) => timeText(value * 1e9, 3));
  if (low === high) return `The dashed line is the figure, ${mean}. It has no interval.`;
  const values = stripRows(item).map((row) => row.value).filter((value) => value !== undefined);
  const wider = item.steady[1] < Math.min(...values) || item.steady[2] > Math.max(...values);
  const cut = wider ? " The interval is wider than the range of the samples, so the band is cut off." : "";
  return `The dashed line is the figure, ${mean}. The band is its 95 % interval, ${low} to ${high}.${cut}`;
}

// The interval behind the samples, as far as they reach: a wide one would press them into a line.
function band(values, [mean, low, high]) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const inside = (value) => Math.min(Math.max(value, least), most);
  return { mean: inside(mean), low: inside(low), high: inside(high) };
}

function timeText(nanoseconds, digits = 6) {
  for (const [factor, name] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]]) {
    if (nanoseconds >= factor) return `${Number((nanoseconds / factor).toPrecision(digits))} ${name}`;
  }
  return `${nanoseconds} ns`;
}

function strip(holder, item) {
  return draw(holder, { ...data.strip, data: { values: stripRows(item) } });
}

async function drawShown() {
  document.body.dataset.ready = "no";
  for (const [owner, jobs] of queues) {
    if (document.getElementById(owner)?.hidden) continue;
    while (jobs.length) {
      await jobs.shift()();
      await new Promise((done) => setTimeout(done));
    }
  }
  document.body.dataset.ready = "yes";
}
