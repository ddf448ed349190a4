// One figure for each thing that changes over time: a chart, its lines in words, and the same as a table.

import { drawing, element, say } from "./dom.js";
import * as format from "./format.js";

const HEIGHT = 170;
const SHORTEST_S = 300;
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000];
// Lines differ by their dashes and width too, not by colour alone.
const STYLES = [
  { colour: "--line-1", dash: [], width: 2 },
  { colour: "--line-2", dash: [8, 4], width: 2 },
  { colour: "--line-3", dash: [2, 4], width: 3 },
];

const line = (column, label, text, factor = 1) => ({ column, label, text, factor });

const CHARTS = [
  {
    title: "Utilisation",
    unit: "per cent of the ready workers' capacity",
    lines: [line("utilization", "in use", format.percent, 100)],
    top: 100,
  },
  {
    title: "Load and capacity",
    unit: "requests at once",
    lines: [
      line("offered_slots", "offered, if nobody waited", format.amount),
      line("slots", "what the ready workers can run", format.amount),
    ],
  },
  {
    title: "Workers",
    unit: "replicas",
    lines: [
      line("ready", "ready", format.count),
      line("wanted", "wanted", format.count),
      line("floor", "at least, the hold included", format.count),
    ],
    stepped: true,
  },
  {
    title: "Scale-down window",
    unit: "seconds",
    lines: [line("window_s", "window", format.seconds)],
    stepped: true,
  },
  { title: "Flatness", unit: "from 0 to 1", lines: [line("flatness", "flatness", format.share)], top: 1 },
  { title: "Regrets", unit: "in all", lines: [line("regrets", "regrets", format.count)], stepped: true },
  {
    title: "Saved against a fixed window of 300 s",
    unit: "replica-hours",
    lines: [line("saved_s", "saved", format.hours, 1 / 3600)],
    top: 0.1,
  },
];

export class Charts {
  constructor(place) {
    this.figures = CHARTS.map((chart) => new Figure(chart));
    place.replaceChildren(...this.figures.map((figure) => figure.root));
    this.resized = new ResizeObserver(() => this.figures.forEach((figure) => figure.fit()));
    this.resized.observe(place);
  }

  show(series) {
    this.figures.forEach((figure) => figure.show(series));
  }

  // Colours of a canvas do not follow the style sheet by themselves.
  redraw() {
    this.figures.forEach((figure) => figure.draw());
  }

  end() {
    this.resized.disconnect();
    this.figures.forEach((figure) => figure.plot?.destroy());
  }
}

class Figure {
  constructor(chart) {
    this.chart = chart;
    this.place = element("div", { class: "plot", role: "img" });
    this.values = chart.lines.map(() => element("b"));
    this.table = element("div", { class: "scroll", role: "region", tabindex: "0" });
    this.table.setAttribute("aria-label", `${chart.title} as a table`);
    this.details = element("details", {}, element("summary", {}, `${chart.title} as a table`), this.table);
    this.details.addEventListener("toggle", () => this.fillTable());
    const legend = chart.lines.map((each, number) =>
      element("li", {}, sample(STYLES[number]), `${each.label}: `, this.values[number]),
    );
    this.root = element(
      "figure",
      {},
      element("figcaption", {}, element("h3", {}, chart.title), ` ${chart.unit}`),
      this.place,
      element("ul", { class: "legend" }, ...legend),
      this.details,
    );
  }

  show(series) {
    this.series = series;
    this.times = series.columns.known.map((_, row) => series.start + row * series.step_s);
    this.tell(this.times.length - 1);
    this.place.setAttribute("aria-label", this.summary());
    if (this.plot) {
      this.plot.setData(this.data());
    } else {
      this.draw();
    }
    this.fillTable();
  }

  data() {
    const scaled = ({ column, factor }) =>
      this.series.columns[column].map((value) => (value === null ? null : value * factor));
    return [this.times, ...this.chart.lines.map(scaled)];
  }

  draw() {
    this.plot?.destroy();
    this.plot = new uPlot(options(this), this.data(), this.place);
  }

  fit() {
    this.plot?.setSize({ width: this.place.clientWidth, height: HEIGHT });
  }

  // Says beside each line what it is at a row.
  tell(row) {
    this.chart.lines.forEach(({ column, text }, number) =>
      say(this.values[number], text(this.series.columns[column][row])),
    );
  }

  summary() {
    const [first, last] = [this.times[0], this.times[this.times.length - 1]];
    const parts = this.chart.lines.map(({ column, label, text }) => {
      const known = this.series.columns[column].filter((value) => value !== null);
      if (!known.length) {
        return `${label} unknown`;
      }
      const [low, high] = [Math.min(...known), Math.max(...known)];
      return `${label} between ${text(low)} and ${text(high)}`;
    });
    const span = `from ${format.time(first)} to ${format.time(last)}`;
    return `Chart of ${this.chart.title}, ${span}: ${parts.join("; ")}`;
  }

  fillTable() {
    if (!this.details.open) {
      this.table.replaceChildren();
      return;
    }
    const { lines } = this.chart;
    const head = ["Time", ...lines.map(({ label }) => label)].map((text) =>
      element("th", { scope: "col" }, text),
    );
    const rows = this.times.map((at, row) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, format.exactTime(at)),
        ...lines.map(({ column, text }) =>
          element("td", { class: "number" }, text(this.series.columns[column][row])),
        ),
      ),
    );
    const body = element("tbody", {}, ...rows.reverse());
    this.table.replaceChildren(element("table", {}, element("thead", {}, element("tr", {}, ...head)), body));
  }
}

function sample({ dash, width }) {
  return drawing(
    "svg",
    { width: 34, height: 10, "aria-hidden": "true" },
    drawing("line", { x1: 1, x2: 33, y1: 5, y2: 5, "stroke-width": width, "stroke-dasharray": dash.join(" ") }),
  );
}

function options(figure) {
  const { chart } = figure;
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const axis = { stroke: colour("--text"), grid: { stroke: colour("--rule"), width: 1 }, ticks: { show: false } };
  const whole = chart.stepped ? { incrs: WHOLE } : {};
  return {
    width: figure.place.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, sync: { key: "pool" } },
    scales: { x: { time: true, range: spread }, y: { range: upTo(chart.top) } },
    axes: [
      { ...axis, space: 70, size: 28, values: (_, splits) => splits.map(format.time) },
      { ...axis, ...whole, size: 56 },
    ],
    series: [
      {},
      ...chart.lines.map((_, number) => ({
        stroke: colour(STYLES[number].colour),
        dash: STYLES[number].dash,
        width: STYLES[number].width,
        points: { show: false },
        paths: chart.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
      })),
    ],
    hooks: { setCursor: [(plot) => figure.tell(plot.cursor.idx ?? figure.times.length - 1)] },
  };
}

const spread = (_, first, last) => [Math.min(first, last - SHORTEST_S), last];

function upTo(top) {
  return (_, low, high) => {
    const highest = Math.max(top ?? 0, high ?? 0);
    const lowest = Math.min(0, low ?? 0);
    const room = (highest - lowest || 1) * 0.05;
    return [lowest < 0 ? lowest - room : 0, highest > 0 || lowest === 0 ? (highest || 1) + room : room];
  };
}
