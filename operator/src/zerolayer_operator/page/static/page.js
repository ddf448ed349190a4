// Asks the operator for figures while the page is looked at, and shows them.

import { Charts } from "./charts.js";
import { byId, element, say, sayOrHide } from "./dom.js";
import * as format from "./format.js";
import { filterRows, markSelected, showList } from "./list.js";

const EVERY_MS = 5000;
const LIMIT_MS = 10000;

const FACTS = [
  ["Utilisation", "utilization", (pool) => format.percent(pool.utilization)],
  ["Workers ready", "ready", (pool) => format.count(pool.ready)],
  ["Workers wanted", "wanted", (pool) => format.count(pool.wanted)],
  ["Window", "window", (pool) => format.seconds(pool.window_s)],
  ["Hold", "hold", (pool) => format.hold(pool.hold)],
  ["Workers at least", "floor", (pool) => format.count(pool.floor)],
  ["Flatness", "flatness", (pool) => format.share(pool.flatness)],
  ["Regrets", "regrets", (pool) => format.count(pool.regrets)],
  ["Saved", "saved", format.saved],
  ["Saved, in replica-seconds", "saved-seconds", (pool) => String(format.whole(pool.saved_s))],
  ["Saved, in money", "saved-money", (pool) => pool.saved ?? ""],
  ["Spent", "spent", (pool) => pool.spent ?? ""],
  ["Spent, weighted by latency", "weighted", (pool) => pool.weighted ?? ""],
  ["First token, 99th percentile", "first-token", (pool) => format.wait(pool.first_token_p99_s)],
  ["Latency penalty", "latency-penalty", (pool) => format.penalty(pool.latency_penalty)],
  ["As of", "at", (pool) => format.exactTime(pool.at)],
];

let charts = null;
let shown = "";
let answeredAt = null;
let round = 0;

async function ask(path) {
  const answer = await fetch(`api/v1/${path}`, { signal: AbortSignal.timeout(LIMIT_MS) });
  if (!answer.ok && answer.status !== 404) {
    throw new Error(`the answer is ${answer.status}`);
  }
  return answer.ok ? answer.json() : null;
}

async function refresh() {
  const mine = ++round;
  try {
    const selected = location.hash;
    const [all, pool] = await Promise.all([ask("pools"), selected ? ask(`pools/${selected.slice(1)}`) : null]);
    if (mine !== round) {
      return;
    }
    answeredAt = Date.now() / 1000;
    sayOrHide(byId("trouble"), "");
    say(byId("source"), source(all));
    showList(all.pools, emptiness(all));
    markSelected(selected);
    showPool(selected, pool);
  } catch (error) {
    if (mine === round) {
      sayOrHide(byId("trouble"), trouble(error));
    }
  }
}

function source({ leading, leader, name }) {
  if (leading) {
    return `Autoscaled pools, as ${name} sees them, which leads.`;
  }
  return leader ? `${name} stands by; ${leader} leads.` : `${name} stands by; nobody leads yet.`;
}

function emptiness({ leading, leader, namespace, port }) {
  if (leading) {
    return "No pool is autoscaled, or none was looked at yet; figures come every 15 s.";
  }
  if (!leader) {
    return "Figures come once a replica leads.";
  }
  return `Only the leader has figures: kubectl --namespace ${namespace} port-forward pod/${leader} ${port}`;
}

function trouble(error) {
  const since = answeredAt === null ? "" : ` What is shown is of ${format.exactTime(answeredAt)}.`;
  return `The operator does not answer (${error.message}); the page goes on asking.${since}`;
}

function showPool(selected, pool) {
  byId("pool").hidden = selected === "";
  if (selected !== shown || !pool) {
    charts?.end();
    charts = null;
    byId("charts").replaceChildren();
    shown = selected;
  }
  say(byId("pool-heading"), selected.slice(1));
  document.title = selected ? `${selected.slice(1)} – ZeroLayer pools` : "ZeroLayer pools";
  sayOrHide(byId("pool-note"), selected && !pool ? "Nothing is known of this pool." : "");
  showFacts(pool?.newest);
  if (pool) {
    charts ??= new Charts(byId("charts"));
    charts.show(pool);
  }
}

function showFacts(newest) {
  const list = byId("newest");
  sayOrHide(byId("why"), newest?.why ?? "");
  if (!newest) {
    list.replaceChildren();
    return;
  }
  if (!list.children.length) {
    list.append(
      ...FACTS.map(([label, id]) =>
        element("div", {}, element("dt", {}, label), element("dd", { id: `newest-${id}` })),
      ),
    );
  }
  for (const [, id, text] of FACTS) {
    const place = byId(`newest-${id}`);
    say(place, text(newest));
    // A pool without a price has no money to tell of.
    place.parentElement.hidden = place.textContent === "";
  }
}

byId("filter").addEventListener("input", filterRows);
say(byId("zone"), format.zone);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts?.redraw());
window.addEventListener("hashchange", async () => {
  await refresh();
  byId("pool").focus();
});
document.addEventListener("visibilitychange", () => document.hidden || refresh());
setInterval(() => document.hidden || refresh(), EVERY_MS);
refresh();
