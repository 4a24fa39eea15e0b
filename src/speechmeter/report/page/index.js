// The first page of a site: all runs with their answers, found by words, device and model.
const main = document.getElementById("main");

function choice(name, title, values) {
  if (values.length < 2) return null;
  return make("select", { id: name, "aria-label": title }, make("option", { value: "" }, title), ...values.map((one) => make("option", { value: one }, one.slice(0, 60))));
}

function index() {
  const every = (key) => [...new Set(data.studies.flatMap((study) => study[key]))].sort();
  const search = make("input", { type: "search", id: "filter", placeholder: "filter by run, model, device, finding …", "aria-label": "Filter the runs" });
  const selects = [choice("device", "all devices", every("devices")), choice("model", "all models", every("models"))].filter(Boolean);
  const count = make("span", { id: "count", class: "quiet", "aria-live": "polite" });
  const cards = data.studies.map((study) => {
    const card = cardOf(study);
    card.append(make("p", { class: "quiet about" }, study.about.join(" · ")));
    return [study, card, [study.name, study.headline, ...study.devices, ...study.models, ...study.about].join(" ").toLowerCase()];
  });
  const narrow = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const picked = Object.fromEntries(selects.map((one) => [`${one.id}s`, one.value]));
    for (const [study, card, text] of cards) {
      card.hidden = !words.every((word) => text.includes(word)) || Object.entries(picked).some(([key, value]) => value && !study[key].includes(value));
    }
    const left = cards.filter(([, card]) => !card.hidden).length;
    count.textContent = left === cards.length ? `${left} runs` : `${left} of ${cards.length} runs`;
  };
  for (const one of [search, ...selects]) one.addEventListener("input", narrow);
  main.append(make("section", { id: "studies", "aria-label": "All runs" }, make("div", { class: "tools" }, search, ...selects, count), make("div", { class: "cards" }, ...cards.map(([, card]) => card))));
  main.append(make("footer", { class: "quiet" }, make("a", { href: "index.json" }, "This list as JSON"), ` · Made by Speechmeter ${data.version}.`));
  narrow();
}

document.body.classList.add("index");
themes();
index();
document.body.dataset.ready = "yes";
