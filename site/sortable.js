// SPDX-License-Identifier: Apache-2.0
//
// Tables of the site sort themselves by the column whose head is pressed: by the number that a cell begins with or has
// after its first words, with its unit; else by text. Pressed again: the other way round. Loaded by every page.
"use strict";

const LEAST_ROWS = 5; // shorter ones are seen at a glance
const UNITS = { "": 1, ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, k: 1e3, M: 1e6, G: 1e9, KiB: 1024, MiB: 1048576, GiB: 1073741824 };

function value(cell) {
  const text = cell.textContent.trim();
  const found = /(?:^|\s)([-+]?(?:\d[\d,]*)?\.?\d+)\s?(ns|us|ms|s|k|M|G|KiB|MiB|GiB)?(?![\w/])/.exec(text);
  const number = found ? Number(found[1].replaceAll(",", "")) * UNITS[found[2] ?? ""] : Number.NaN;
  return { text, number };
}

function compare(one, other) {
  const [first, second] = [Number.isNaN(one.number), Number.isNaN(other.number)];
  if (!first && !second) return one.number - other.number;
  if (first !== second) return first ? 1 : -1; // what has no number comes after what has
  return one.text.localeCompare(other.text);
}

function sortBy(table, column, descending) {
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => ({ row, key: value(row.cells[column]) }));
  rows.sort((one, other) => (descending ? compare(other.key, one.key) : compare(one.key, other.key)));
  body.append(...rows.map(({ row }) => row));
}

for (const table of document.querySelectorAll("article table:not([class])")) {
  if (!table.tHead || table.tBodies[0].rows.length < LEAST_ROWS) continue;
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      sortBy(table, column, descending);
    });
  });
}
