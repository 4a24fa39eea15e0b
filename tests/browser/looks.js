// What the tests measure in a page: contrast of every text, and texts of a chart that lie on each other.
function channels(colour) {
  const found = colour.match(/[\d.]+/g).map(Number);
  return { rgb: found.slice(0, 3), alpha: found.length > 3 ? found[3] : 1 };
}
function luminance(rgb) {
  const [r, g, b] = rgb.map((part) => part / 255).map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function ratio(first, second) {
  const [low, high] = [luminance(first), luminance(second)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}
function ground(element) {
  for (let one = element; one; one = one.parentElement) {
    const { rgb, alpha } = channels(getComputedStyle(one).backgroundColor);
    if (alpha > 0.99) return rgb;
  }
  return [255, 255, 255];
}
function below(text) {
  const box = text.getBoundingClientRect();
  const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
  const blocks = [...text.closest("svg").querySelectorAll(".mark-rect path, .mark-bar path")].filter((block) => {
    const own = block.getBoundingClientRect();
    const style = getComputedStyle(block);
    return style.fill !== "none" && channels(style.fill).alpha > 0.9 && Number(style.opacity) > 0.9 && own.left <= x && x <= own.right && own.top <= y && y <= own.bottom;
  });
  return blocks.length ? channels(getComputedStyle(blocks.at(-1)).fill).rgb : ground(text.closest("svg"));
}
function shown(element) {
  const box = element.getBoundingClientRect();
  const style = getComputedStyle(element);
  return box.width > 0 && box.height > 0 && style.visibility !== "hidden" && Number(style.opacity) > 0;
}
function texts(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const found = new Set();
  while (walker.nextNode()) if (walker.currentNode.data.trim()) found.add(walker.currentNode.parentElement);
  return [...found].filter((one) => !["SCRIPT", "STYLE", "NOSCRIPT"].includes(one.tagName) && shown(one));
}
window.weakTexts = () => texts(document.body).map((one) => {
  const inside = one.closest("svg");
  const style = getComputedStyle(one);
  const found = ratio(channels(inside ? style.fill : style.color).rgb, inside ? below(one) : ground(one));
  return [found, one.textContent.slice(0, 40), one.tagName];
}).filter(([found]) => found < 4.5);
window.overlaps = () => [...document.querySelectorAll("svg")].flatMap((svg) => {
  const boxes = [...svg.querySelectorAll("text")].filter((one) => one.textContent && shown(one) && one.closest("g[opacity='0']") === null)
    .map((one) => [one.textContent, one.getBoundingClientRect()]);
  return boxes.flatMap(([first, a], place) => boxes.slice(place + 1).filter(([, b]) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3).map(([second]) => [first, second]));
});
