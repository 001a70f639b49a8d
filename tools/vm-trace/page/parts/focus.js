// Draws a part of the page again without taking the focus from who uses the keyboard.
"use strict";
// Gives `box` other children. A button that had the focus passes it to the one in its place; returns whether it could.
function refill(box, ...children) {
  const buttons = () => [...box.querySelectorAll("button, summary")];
  const at = buttons().indexOf(document.activeElement);
  box.replaceChildren(...children);
  if (at < 0) return true;
  const now = buttons(), next = now[Math.min(at, now.length - 1)];
  if (next) next.focus();
  return next !== undefined;
}
