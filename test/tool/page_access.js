// Measures the page in a browser, for test_html_access.rb: contrast by WCAG 2 (1.4.3), words that are broken, and what has
// the focus.
"use strict";
window.page_access = (() => {
  function rgba(text) {
    const srgb = /^color\(srgb (.*)\)$/.exec(text);
    const parts = (srgb ? srgb[1] : text).match(/[\d.e-]+/g).map(Number);
    if (srgb) for (const i of [0, 1, 2]) parts[i] *= 255;
    return { rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1 };
  }
  const over = ({ rgb, alpha }, below) => rgb.map((part, i) => part * alpha + below[i] * (1 - alpha));
  const mixed = (above, below, alpha) => above.map((part, i) => part * alpha + below[i] * (1 - alpha));
  function luminance(rgb) {
    const [r, g, b] = rgb.map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }
  function contrast(one, other) {
    const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
  }

  // What is painted by an element, its ancestors first: `color` over all backgrounds, or only these (null).
  function painted(element, color) {
    const chain = [];
    for (let at = element; at; at = at.parentElement) chain.unshift(getComputedStyle(at));
    const paint = (i, below) => {
      const own = over(rgba(chain[i].backgroundColor), below);
      const inside = i + 1 < chain.length ? paint(i + 1, own) : color ? over(color, own) : own;
      return mixed(inside, below, Number(chain[i].opacity));
    };
    return paint(0, matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255]);
  }

  const shown = (element) => element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;

  function text_nodes() {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), list = [];
    while (walker.nextNode()) {
      const element = walker.currentNode.parentElement;
      if (walker.currentNode.data.trim() !== "" && !element.closest("script, noscript, style") && shown(element)) list.push(walker.currentNode);
    }
    return list;
  }

  const named = (element) => `${element.tagName.toLowerCase()}${element.id ? `#${element.id}` : ""}` +
    `${element.getAttribute("class") ? `.${element.getAttribute("class").trim().replace(/ +/g, ".")}` : ""}`;

  // [how many texts, the lowest contrast of each kind of element that has less than it needs]
  function poor_contrasts() {
    const poor = new Map();
    const judge = (element, style, text) => {
      const color = rgba(element instanceof SVGElement ? style.fill : style.color), size = parseFloat(style.fontSize);
      const ratio = contrast(painted(element, color), painted(element, null));
      const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      const name = `${named(element.parentElement)} > ${named(element)}`;
      if (ratio < (large ? 3 : 4.5) && !(poor.has(name) && poor.get(name)[0] <= ratio)) poor.set(name, [ratio, text.slice(0, 30)]);
    };
    const nodes = text_nodes();
    for (const node of nodes) judge(node.parentElement, getComputedStyle(node.parentElement), node.data);
    for (const input of document.querySelectorAll("input[placeholder]")) judge(input, getComputedStyle(input, "::placeholder"), input.placeholder);
    return [nodes.length, [...poor].map(([name, [ratio, text]]) => `${ratio.toFixed(2)} ${name} "${text}"`)];
  }

  // The same of texts on canvases, while `draw` runs.
  function poor_contrasts_of_canvas(draw) {
    const prototype = CanvasRenderingContext2D.prototype, { fillText } = prototype, poor = [];
    const pixel = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    let count = 0;
    prototype.fillText = function (text, x, y) {
      if (text.trim() !== "") {
        const scale = this.getTransform().a, probe = document.createElement("i");
        pixel.clearRect(0, 0, 1, 1);
        pixel.drawImage(this.canvas, (x + 1) * scale, (y - 4) * scale, 1, 1, 0, 0, 1, 1);
        const [r, g, b, alpha] = pixel.getImageData(0, 0, 1, 1).data;
        probe.style.color = this.fillStyle;
        document.body.append(probe);
        const below = mixed([r, g, b], painted(this.canvas, null), alpha / 255), color = rgba(getComputedStyle(probe).color);
        probe.remove();
        const ratio = contrast(over({ rgb: color.rgb, alpha: color.alpha * this.globalAlpha }, below), below);
        count++;
        if (ratio < 4.5) poor.push(`${ratio.toFixed(2)} canvas "${text}"`);
      }
      return fillText.apply(this, arguments);
    };
    draw();
    return page_settled().then(() => { prototype.fillText = fillText; return [count, poor]; });
  }

  // Words of cells that are on more than one line.
  function broken_words() {
    const broken = [];
    for (const node of text_nodes().filter((text) => text.parentElement.closest("td, th"))) {
      for (const { 0: word, index } of node.data.matchAll(/[\p{L}\p{N}_]+/gu)) {
        const range = document.createRange();
        range.setStart(node, index);
        range.setEnd(node, index + word.length);
        const lines = new Set([...range.getClientRects()].filter((box) => box.width > 0).map((box) => Math.round(box.top)));
        if (lines.size > 1) broken.push(`${named(node.parentElement.closest("td, th"))} of ${node.parentElement.closest("table").id}: ${word}`);
      }
    }
    return broken;
  }

  // What has the focus, and how much its outline differs from what is around it.
  function focused() {
    const element = document.activeElement, style = getComputedStyle(element), box = element.getBoundingClientRect();
    const width = style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth);
    return {
      name: element === document.body ? null : named(element), outline: width,
      ratio: width > 0 ? contrast(over(rgba(style.outlineColor), painted(element, null)), painted(element.parentElement, null)) : 0,
      number: [...document.querySelectorAll("*")].indexOf(element),
      covered: box.bottom > 0 && box.top < innerHeight ? covered(element, box) : "outside",
    };
  }

  function covered(element, box) {
    const x = Math.min(Math.max(box.left + Math.min(box.width, 20) / 2, 0), innerWidth - 1), y = Math.min(Math.max(box.top + 5, 0), innerHeight - 1);
    const top = document.elementFromPoint(x, Math.min(y, box.bottom - 1));
    return top && (element.contains(top) || top.contains(element)) ? "" : `by ${top ? named(top) : "nothing"}`;
  }

  // What a key must be able to reach: the sequence of Tab has it.
  function reachable() {
    const all = [...document.querySelectorAll("*")];
    return all.filter((element) => element.matches("button, input, a[href], summary, [tabindex='0']") && shown(element))
      .map((element) => [all.indexOf(element), named(element)]);
  }

  return { poor_contrasts, poor_contrasts_of_canvas, broken_words, focused, reachable };
})();
