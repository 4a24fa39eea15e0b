// Charts: specifications come with the data; colours are the style sheet's, so that a change of theme needs no redrawing.
const queue = [];
const NARROW = 520;

function lookFor(width) {
  const config = structuredClone(data.config);
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

function figureOf(one) {
  const said = [one.caption, ...one.caveats.map((caveat) => `${caveat[0].toUpperCase()}${caveat.slice(1)}.`)].filter(Boolean).join(" ");
  const holder = make("div", { class: "chart", role: "img", "aria-label": `${one.title}. ${said}` });
  const saver = make("button", { type: "button", onclick: () => save(holder, one.title) }, "save as SVG");
  queue.push(() => draw(holder, one.spec));
  return make("figure", null, make("h3", { title: one.title }, one.title), holder, make("figcaption", null, said),
    make("div", { class: "tools" }, valuesOf(one), saver));
}

function stripRows(item) {
  const rounds = item.samples["latency.v1"] || [];
  let order = 0;
  const rows = rounds.flatMap((values, place) => values.map((value) => ({ order: (order += 1), round: item.rounds[place][0] + 1, value: value * 1e-9, text: timeText(value) })));
  return rows.length && item.steady ? [...rows, band(rows.map((row) => row.value), item.steady)] : rows;
}

// The interval behind the samples, as far as they reach: a wide one would press them into a line.
function band(values, [mean, low, high]) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const inside = (value) => Math.min(Math.max(value, least), most);
  return { mean: inside(mean), low: inside(low), high: inside(high) };
}

function timeText(nanoseconds) {
  for (const [factor, name] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]]) {
    if (nanoseconds >= factor) return `${Number((nanoseconds / factor).toPrecision(6))} ${name}`;
  }
  return `${nanoseconds} ns`;
}

function strip(holder, item) {
  return draw(holder, { ...data.strip, data: { values: stripRows(item) } });
}

async function drawAll() {
  for (const job of queue) {
    await job();
    await new Promise((done) => setTimeout(done));
  }
  document.body.dataset.ready = "yes";
}
