// The table of all pools: rows are made once and then only their text changes, so that focus stays.

import { byId, element, say, sayOrHide } from "./dom.js";
import * as format from "./format.js";

const COLUMNS = [
  (pool) => format.percent(pool.utilization),
  (pool) => `${pool.ready} / ${pool.wanted}`,
  (pool) => format.seconds(pool.window_s),
  (pool) => format.hold(pool.hold),
  (pool) => format.share(pool.flatness),
  (pool) => format.count(pool.regrets),
  (pool) => [format.saved(pool), pool.saved].filter(Boolean).join(", "),
];

const rows = new Map();

export const address = (pool) => `#${pool.namespace}/${pool.name}`;

export function showList(pools, note) {
  const body = byId("list").tBodies[0];
  const present = new Set(pools.map(address));
  for (const [key, row] of rows) {
    if (!present.has(key)) {
      row.remove();
      rows.delete(key);
    }
  }
  pools.forEach((pool, place) => {
    const row = rows.get(address(pool)) ?? makeRow(pool);
    if (body.rows[place] !== row) {
      body.insertBefore(row, body.rows[place] ?? null);
    }
    COLUMNS.forEach((text, column) => say(row.cells[column + 2], text(pool)));
  });
  sayOrHide(byId("empty"), pools.length ? "" : note);
  filterRows();
}

function makeRow(pool) {
  const row = element(
    "tr",
    {},
    element("td", {}, pool.namespace),
    element("th", { scope: "row" }, element("a", { href: address(pool) }, pool.name)),
    ...COLUMNS.map(() => element("td", { class: "number" })),
  );
  rows.set(address(pool), row);
  return row;
}

export function filterRows() {
  const words = byId("filter").value.toLowerCase().split(/\s+/);
  let shown = 0;
  for (const [key, row] of rows) {
    row.hidden = !words.every((word) => key.includes(word));
    shown += row.hidden ? 0 : 1;
  }
  say(byId("count"), shown === rows.size ? `${rows.size} in all` : `${shown} of ${rows.size}`);
}

export function markSelected(selected) {
  for (const [key, row] of rows) {
    const link = row.querySelector("a");
    if (key === selected) {
      link.setAttribute("aria-current", "true");
    } else {
      link.removeAttribute("aria-current");
    }
  }
}
