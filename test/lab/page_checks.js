// SPDX-License-Identifier: Apache-2.0
//
// What test/lab/page_test.py asks a browser about the page of `hz report`: returns one line for each thing that is
// wrong. The window is as high as the page, so everything can be asked what lies under it.
const wrong = [];
const words = (node) => node.textContent.trim().replace(/\s+/g, " ").slice(0, 40);
const box = (node) => node.getBoundingClientRect();

function colour(text) {  // rgb(), rgba()
  const [red, green, blue, alpha = 1] = (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
  return { parts: [red, green, blue], alpha };
}

function luminance(parts) {
  const [red, green, blue] = parts.map((part) => {
    const value = part / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

// The first thing under the middle of the text that has a colour.
function ground(node, rect) {
  const under = document.elementsFromPoint((rect.left + rect.right) / 2, (rect.top + rect.bottom) / 2);
  for (const one of under) {
    const style = getComputedStyle(one);
    const isShape = one instanceof SVGGeometryElement;
    const paint = colour(isShape ? (style.fill === "none" ? "" : style.fill) : style.backgroundColor);
    if (!one.closest("text") && paint.alpha === 1) return paint.parts;
  }
  return colour(getComputedStyle(document.body).backgroundColor).parts;
}

function checkText(node, rect) {
  const style = getComputedStyle(node);
  const ink = colour(node instanceof SVGElement ? style.fill : style.color).parts;
  const ratio = contrast(ink, ground(node, rect));
  if (ratio < 4.5) wrong.push(`contrast ${ratio.toFixed(1)}: ${words(node)}`);
  if (/\b(nan|none|null|undefined|inf)\b|[{}]{2}/i.test(node.textContent)) wrong.push(`no value: ${words(node)}`);
}

for (const node of document.querySelectorAll("body *:not(svg *)")) {
  const own = [...node.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim());
  if (own) checkText(node, box(node));
}

for (const svg of document.querySelectorAll("svg")) {
  const frame = box(svg);
  const name = svg.getAttribute("aria-label");
  const texts = [...svg.querySelectorAll("text")];
  if (frame.width < 100 || frame.height < 50 || texts.length < 3 || !svg.querySelector("path")) {
    wrong.push(`empty picture: ${name}`);
  }
  const upright = [];
  for (const text of texts) {
    const rect = box(text);
    checkText(text, rect);
    if (rect.left < frame.left - 2 || rect.right > frame.right + 2 || rect.top < frame.top - 2 ||
        rect.bottom > frame.bottom + 2) {
      wrong.push(`outside of its picture ${name}: ${words(text)}`);
    }
    // A turned text's box is larger than the text.
    if (!/rotate\(-[1-9]/.test(text.getAttribute("transform") || "")) upright.push([text, rect]);
  }
  upright.forEach(([text, a], number) => {
    for (const [other, b] of upright.slice(number + 1)) {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 0.3 * Math.min(a.height, b.height)) {
        wrong.push(`${words(text)} over ${words(other)} in ${name}`);
      }
    }
  });
}

for (const heading of document.querySelectorAll("h2")) {
  const next = heading.nextElementSibling;
  if (!next || box(next).height < 5) wrong.push(`nothing under ${words(heading)}`);
}
for (const table of document.querySelectorAll("table")) {
  if (!table.querySelector("tbody tr")) wrong.push(`empty table: ${words(table)}`);
}
const page = document.documentElement;
if (page.scrollWidth > page.clientWidth) wrong.push(`the page is ${page.scrollWidth} wide in ${page.clientWidth}`);
for (const entry of performance.getEntriesByType("resource")) wrong.push(`loads ${entry.name}`);
return wrong;
