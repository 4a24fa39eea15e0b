// The page from top to bottom, and the way through it: all studies, or the one that the address names.
const main = document.getElementById("main");
const several = data.studies.length > 1;

function linksTo(parent) {
  const titled = [...parent.querySelectorAll(":scope > section[id]")].filter((one) => one.querySelector(":scope > h3"));
  return titled.map((one) => make("a", { href: `#${one.id}` }, one.querySelector(":scope > h3").textContent));
}

function contents() {
  const nav = document.getElementById("contents");
  if (data.home) nav.append(make("a", { href: data.home.index, class: "all" }, "All runs"));
  if (several) nav.append(make("a", { href: "#studies", class: "all" }, "All studies"));
  for (const study of data.studies) {
    const inside = make("div", { class: "inside" }, ...linksTo(document.getElementById(study.id)));
    nav.append(make("div", { class: "of-study", "data-study": study.id }, make("a", { href: `#${study.id}`, class: "name", title: study.name }, study.name), inside));
  }
  nav.append(make("div", { class: "of-page" }, ...linksTo(main)));
  const menu = document.getElementById("menu");
  const open = (shown) => {
    document.body.classList.toggle("menu-open", shown);
    menu.setAttribute("aria-expanded", String(shown));
  };
  menu.addEventListener("click", () => open(!document.body.classList.contains("menu-open")));
  nav.addEventListener("click", (event) => event.target.closest("a") && open(false));
  document.addEventListener("keydown", (event) => event.key === "Escape" && open(false));
}

// `#study` and `#study--section` show that study alone; everything else shows all of them.
function route() {
  const asked = decodeURIComponent(location.hash.slice(1));
  const chosen = several ? data.studies.find((study) => asked === study.id || asked.startsWith(`${study.id}--`)) : null;
  for (const article of main.querySelectorAll("article.study")) article.hidden = Boolean(chosen) && article.id !== chosen.id;
  main.classList.toggle("single", Boolean(chosen));
  for (const one of main.querySelectorAll("#studies, .together")) one.hidden = Boolean(chosen);
  for (const one of document.querySelectorAll("#contents .of-study")) one.classList.toggle("open", !several || one.dataset.study === chosen?.id);
  for (const link of document.querySelectorAll("#contents a")) {
    if (link.hash === `#${asked || "studies"}`) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  document.getElementById("here").textContent = chosen ? chosen.name : several ? "" : data.studies[0]?.name ?? "";
  window.dispatchEvent(new Event("resize"));
  drawShown();
  const target = asked && document.getElementById(asked);
  if (target) target.scrollIntoView();
  else if (asked && chosen) document.getElementById(chosen.id).scrollIntoView();
}

function printing() {
  addEventListener("beforeprint", () => main.querySelectorAll("details.notes").forEach((one) => { one.open = true; }));
}

themes();
if (several) main.append(overview());
for (const one of data.together) chartSection(main, "main", "", one)?.classList.add("together");
lensesSection(main, "lenses", data.lenses)?.classList.add("together");
for (const study of data.studies) main.append(studyOf(study));
environmentsSection(main);
definitionsSection(main);
main.append(make("footer", { class: "quiet" }, data.home ? make("a", { href: data.home.data }, "These figures as JSON") : null, data.home ? " · " : "", `Made by Speechmeter ${data.version}.${data.home ? "" : " This file is complete: it loads nothing."}`));
contents();
printing();
addEventListener("hashchange", route);
route();
