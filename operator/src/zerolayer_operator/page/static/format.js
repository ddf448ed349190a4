// Values as text. What is not known is said in words: a dash would be read out as nothing.

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const exactClock = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});

export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

export const time = (seconds) => clock.format(seconds * 1000);
export const exactTime = (seconds) => exactClock.format(seconds * 1000);

// Rounded to nothing is nothing, not less than nothing.
const fixed = (value, digits) => value.toFixed(digits).replace(/^-(0\.?0*)$/, "$1");

const known = (text) => (value) => (value === null || value === undefined ? "unknown" : text(value));

// Halves go to the even neighbour, as in the pool's status.
export const whole = (value) => {
  const up = Math.round(value);
  return Math.abs(value % 1) === 0.5 && up % 2 !== 0 ? up - 1 : up;
};

export const percent = known((share) => `${whole(100 * share)} %`);
export const seconds = known((value) => `${value} s`);
export const share = known((value) => value.toFixed(2));
export const count = known((value) => String(value));
export const amount = known((value) => String(Number(value.toPrecision(3))));
export const hours = known((value) => `${fixed(value / 3600, 2)} h`);

// Figures of pools with a latency penalty alone: others have none that could be unknown.
export const wait = (value) => {
  if (value === null) {
    return "";
  }
  return value < 1 ? `${amount(1000 * value)} ms` : `${amount(value)} s`;
};
export const penalty = (value) => (value === null ? "" : share(value));

export const hold = (value) => (value === null ? "none" : String(value));

// How much of what a fixed window would have cost was saved.
export const saved = (figures) => {
  const ordinary = figures.spent_s + figures.saved_s;
  const part = ordinary > 0 ? ` (${fixed((100 * figures.saved_s) / ordinary, 1)} %)` : "";
  return hours(figures.saved_s) + part;
};
