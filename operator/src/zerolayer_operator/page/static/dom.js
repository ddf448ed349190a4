// Elements with text and attributes; text is never read as markup.

export const byId = (id) => document.getElementById(id);

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

export function drawing(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

// Changes text only where it differs, so that selections and screen readers are left alone.
export function say(target, text) {
  if (target.textContent !== text) {
    target.textContent = text;
  }
}

export function sayOrHide(target, text) {
  say(target, text);
  target.hidden = text === "";
}
