"use strict";
// The cases that a page of evidence holds, and how one is drawn: its picture, its boxes, its verdicts.
// Every text here is untrusted: it is set as textContent, never as markup.
const evidenceCases = async (root) => {
  const make = (tag, name, text) => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const draw = (tag, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
    return element;
  };

  const bytesOf = (text) => {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const signs = atob(text), bytes = new Uint8Array(signs.length);
    for (let at = 0; at < signs.length; at += 1) bytes[at] = signs.charCodeAt(at);
    return bytes;
  };
  const inflate = async (text) => {
    const bytes = bytesOf(text);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  };
  const data = await inflate(root.querySelector(".ev-data").textContent);
  const total = Array.isArray(data.id) ? data.id.length : data.id.at.length;
  const reader = (column) => (Array.isArray(column) ? (row) => column[row] : (row) => column.of[column.at[row]]);
  const [idOf, videoOf, frameOf, askedOf, referenceOf] = ["id", "video", "frame", "asked", "reference"].map((name) => reader(data[name]));
  const said = data.said.map((one) => ({ answer: reader(one.answer), verdict: reader(one.verdict), reason: reader(one.reason) }));
  const several = data.models.length > 1;
  const good = new Set(data.right), open = new Set(data.open), doubtful = new Set(data.doubtful);
  const tone = (verdict) => (good.has(verdict) ? "good" : open.has(verdict) ? "neutral" : "bad");
  if (several) root.dataset.several = "";
  root.style.setProperty("--models", data.models.length);
  // A column in which nothing stands is left out.
  const pictured = data.pictures.some((kept) => Object.keys(kept).length) || data.boxes.some((boxes) => boxes.row.length);
  const referenced = (Array.isArray(data.reference) ? data.reference : data.reference.of).some(Boolean);
  root.toggleAttribute("data-unpictured", !pictured);
  root.toggleAttribute("data-unreferenced", !referenced);

  // Boxes of a case are neighbours: where each case's begin.
  const starts = data.boxes.map((boxes) => {
    const start = new Uint32Array(total + 1);
    boxes.row.forEach((row) => { start[row + 1] += 1; });
    for (let row = 0; row < total; row += 1) start[row + 1] += start[row];
    return start;
  });
  const boxesOf = (row, model) => {
    const { kind, label, labels, xywh } = data.boxes[model], made = [];
    for (let at = starts[model][row]; at < starts[model][row + 1]; at += 1) {
      made.push({ kind: data.kinds[kind[at]], label: labels[label[at]], xywh: xywh.map((side) => side[at]) });
    }
    return made;
  };
  const pictures = [...root.querySelectorAll(".ev-picture")];
  const addresses = new Map();
  const address = (number) => {
    if (!addresses.has(number)) addresses.set(number, `data:image/jpeg;base64,${pictures[number].textContent}`);
    return addresses.get(number);
  };
  const pictureOf = (row, model) => data.pictures[model][row];
  const sizeOf = (row) => (data.sizes ? data.sizes.of[data.sizes.at[row]] : [null, null]);

  const shot = (row, model, large) => {
    const picture = pictureOf(row, model), boxes = boxesOf(row, model), [width, height] = sizeOf(row);
    const alt = `${videoOf(row)} ${frameOf(row)}`;
    if (width > 0 && height > 0 && (picture !== undefined || boxes.length)) {
      const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": alt });
      svg.append(picture === undefined ? draw("rect", { width, height, class: "ev-canvas" })
        : draw("image", { href: address(picture), width, height, preserveAspectRatio: "none" }));
      const size = width / 42, line = 1.2 * size, taken = [];
      // Names step aside from names: the nearest line that is free and inside the frame.
      const free = (x, y, w) => {
        const steps = Array.from({ length: 24 }, (_, k) => y + (k % 2 ? -1 : 1) * Math.ceil(k / 2) * line);
        const fits = (at) => at >= size && at <= height - size / 4 && taken.every((other) => Math.abs(other.y - at) >= line || other.x + other.w < x || x + w < other.x);
        const at = steps.find(fits) ?? y;
        taken.push({ x, y: at, w });
        return at;
      };
      boxes.forEach(({ kind, label, xywh: [x, y, w, h] }) => {
        svg.append(draw("rect", { x, y, width: Math.max(w, 0), height: Math.max(h, 0), class: `ev-box ${kind}` }));
        if (!large) return;
        const above = kind === "label" || kind === "missed", wide = 0.62 * size * label.length;
        const left = Math.max(Math.min(Math.max(x, 0) + size / 4, width - wide), 0);
        const wished = above ? Math.max(y - size / 3, size) : Math.min(y + h + size, height - size / 4);
        const name = draw("text", { x: left, y: free(left, wished, wide), "font-size": size, class: "ev-name" });
        name.textContent = label;
        svg.append(name);
      });
      return svg;
    }
    if (picture === undefined) return null;
    const image = make("img");
    image.src = address(picture);
    image.alt = alt;
    return image;
  };
  const models = data.models.map((_, number) => number);
  // In a row one picture stands for all models: of the first that has one.
  const thumb = (row) => {
    const holder = make("div", "ev-thumb");
    const model = models.find((one) => pictureOf(row, one) !== undefined) ?? models.find((one) => boxesOf(row, one).length);
    const picture = model === undefined ? null : shot(row, model, false);
    holder.append(picture ?? "no picture kept");
    return holder;
  };
  const verdictOf = (row, model) => {
    const verdict = said[model].verdict(row);
    return verdict == null ? make("span", "ev-verdict neutral", "not asked") : make("span", `ev-verdict ${tone(verdict)}${doubtful.has(verdict) ? " doubtful" : ""}`, verdict);
  };
  return {
    data, total, models, several, pictured, referenced, said, idOf, videoOf, frameOf, askedOf, referenceOf, boxesOf, pictureOf,
    make, draw, tone, shot, thumb, verdictOf,
  };
};
