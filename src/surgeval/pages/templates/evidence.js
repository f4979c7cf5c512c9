// The browser of evidence: filters, the list, one case in full, links to it, and paper.
// Every text here is untrusted: it is set as textContent, never as markup.
document.querySelectorAll(".evidence").forEach(async (root) => {
  const began = performance.now();
  const PRINTED = 50, OPTIONS = 500, TALLEST = 8e6, EXTRA = 6;
  const part = (name) => root.querySelector(name);
  const tools = part(".ev-tools"), list = part(".ev-list"), space = part(".ev-space"), count = part(".ev-count");
  const dialog = part(".ev-dialog"), noun = root.dataset.case;
  const spaced = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");
  const {
    data, total, models, several, pictured, referenced, said, idOf, videoOf, frameOf, askedOf, referenceOf, boxesOf, pictureOf,
    make, draw, tone, shot, thumb, verdictOf,
  } = await evidenceCases(root);

  // Filters and orders.
  const state = { q: "", disagree: false, sort: data.order, facets: new Map(), open: null };
  const facets = data.facets.map((facet) => ({ ...facet, at: Int32Array.from(facet.at), row: facet.row ? Uint32Array.from(facet.row) : null }));
  const orders = data.numbers.map((number) => ({ ...number, values: Float64Array.from(number.values, (value) => (value === null ? NaN : value)) }));
  // On a phone the filters would fill the first screen: there a button opens them.
  const more = make("button", "ev-more"), folded = make("div", "ev-filters");
  more.type = "button";
  more.addEventListener("click", () => { folded.toggleAttribute("data-open"); tellFilters(); });
  const tellFilters = () => {
    const used = state.facets.size + state.disagree + (state.sort !== data.order);
    more.textContent = `Filters and order${used ? ` (${used} in use)` : ""}`;
    more.setAttribute("aria-expanded", folded.hasAttribute("data-open"));
  };
  tools.append(more, folded);
  const choice = (label, options) => {
    const holder = make("label", "", label), select = make("select");
    options.forEach(([value, text]) => { const option = make("option", "", text); option.value = value; select.append(option); });
    holder.append(select);
    folded.append(holder);
    return select;
  };
  facets.forEach((facet) => {
    const counts = new Uint32Array(facet.of.length);
    facet.at.forEach((value) => { if (value >= 0) counts[value] += 1; });
    const listed = facet.of.slice(0, OPTIONS).map((text, value) => [String(value), `${text} (${spaced(counts[value])})`]);
    facet.select = choice(facet.label, [["", "all"], ...listed]);
    facet.select.addEventListener("change", () => {
      if (facet.select.value === "") state.facets.delete(facet.key);
      else state.facets.set(facet.key, facet.of[Number(facet.select.value)]);
      update();
    });
  });
  const sorts = choice("Sort by", [["", "as listed"], ...orders.flatMap(({ key, label }) => [[key, `${label}, highest first`], [`-${key}`, `${label}, lowest first`]]), ["id", `${noun} id`]]);
  sorts.addEventListener("change", () => { state.sort = sorts.value; update(); });
  const disagree = make("input");
  disagree.type = "checkbox";
  if (several) {
    const holder = make("label", "ev-check");
    holder.append(disagree, "models disagree");
    folded.append(holder);
    disagree.addEventListener("change", () => { state.disagree = disagree.checked; update(); });
  }
  const clear = make("button", "", "Clear");
  clear.type = "button";
  clear.addEventListener("click", () => { Object.assign(state, { q: "", disagree: false, sort: data.order, facets: new Map() }); controls(); update(); });
  folded.append(clear);
  const search = tools.elements.q;
  let waiting = 0;
  search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => { state.q = search.value; update(); }, total > 20000 ? 120 : 0); });
  tools.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(waiting); state.q = search.value; update(); });

  let haystack = null;
  const hay = () => {
    haystack ??= Array.from({ length: total }, (_, row) => [idOf(row), videoOf(row), frameOf(row), askedOf(row), referenceOf(row),
      ...said.flatMap((one) => [one.answer(row), one.verdict(row), one.reason(row)])].join("\n").toLowerCase());
    return haystack;
  };
  const holds = (facet, text) => {
    const value = facet.of.indexOf(text), passed = new Uint8Array(total);
    facet.at.forEach((own, entry) => { if (own === value) passed[facet.row ? facet.row[entry] : entry] = 1; });
    return passed;
  };
  const differ = (row) => {
    const verdicts = said.map((one) => one.verdict(row)).filter((verdict) => verdict != null);
    return verdicts.some((verdict) => verdict !== verdicts[0]);
  };
  const rank = () => {
    const byId = new Intl.Collator(undefined, { numeric: true });
    const order = Array.from({ length: total }, (_, row) => row).sort((a, b) => byId.compare(idOf(a), idOf(b)));
    const places = new Float64Array(total);
    order.forEach((row, place) => { places[row] = -place; });
    return places;
  };
  let ranked = null, rows = new Uint32Array(0), active = 0;
  const chosen = () => {
    const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    const tests = facets.filter((facet) => state.facets.has(facet.key)).map((facet) => holds(facet, state.facets.get(facet.key)));
    const texts = words.length ? hay() : null;
    const kept = [];
    for (let row = 0; row < total; row += 1) {
      if (tests.every((test) => test[row]) && (!texts || words.every((word) => texts[row].includes(word))) && (!state.disagree || differ(row))) kept.push(row);
    }
    const key = state.sort.replace(/^-/, "");
    const values = key === "id" ? (ranked ??= rank()) : orders.find((order) => order.key === key)?.values;
    if (!values) return Uint32Array.from(kept);
    const sign = state.sort.startsWith("-") ? 1 : -1;
    return Uint32Array.from(kept).sort((a, b) => {
      const [x, y] = [values[a], values[b]];
      if (x !== x || y !== y) return (x !== x) - (y !== y) || a - b; // what is not known stays last
      return sign * (x - y) || a - b;
    });
  };

  const praise = data.right.length === 1 ? data.right[0] : "right";
  const tally = () => {
    const counts = data.models.map((name, model) => {
      const counts = { good: 0, bad: 0, neutral: 0 };
      rows.forEach((row) => { const verdict = said[model].verdict(row); if (verdict != null) counts[tone(verdict)] += 1; });
      const words = [`${spaced(counts.good)} ${praise}`, `${spaced(counts.bad)} not`, ...(counts.neutral ? [`${spaced(counts.neutral)} undecided`] : [])].join(", ");
      return several ? `${name}: ${words}` : words;
    });
    const many = `${noun}${total === 1 ? "" : "s"}`;
    count.textContent = `${rows.length === total ? spaced(total) : `${spaced(rows.length)} of ${spaced(total)}`} ${many} · ${counts.join(" · ")}`;
  };

  // Only the visible rows are in the document.
  const heads = part(".ev-heads");
  heads.append(...[...(pictured ? ["Frame"] : []), "Asked", ...(referenced ? ["Reference"] : []), ...data.models].map((text) => make("span", "", text)));
  const cell = (name, ...content) => { const holder = make("div", `ev-cell ${name}`); holder.append(...content); return holder; };
  const line = (row, place) => {
    const element = make("div", "ev-row");
    element.id = `ev-row-${place}`;
    element.setAttribute("role", "option");
    element.setAttribute("aria-setsize", rows.length);
    element.setAttribute("aria-posinset", place + 1);
    element.setAttribute("aria-selected", place === active);
    element.append(...(pictured ? [thumb(row)] : []), cell("ev-asked", make("span", "ev-id", idOf(row)), make("p", "", askedOf(row))),
      ...(referenced ? [cell("ev-reference", make("p", "", referenceOf(row) || "–"))] : []),
      ...models.map((model) => cell("ev-said", ...(several ? [make("span", "ev-model", data.models[model])] : []), verdictOf(row, model), make("p", "", said[model].answer(row) ?? "–"), make("span", "ev-id", said[model].reason(row) ?? ""))));
    element.addEventListener("click", () => { move(place); reveal(place); });
    return element;
  };
  const tall = () => Number.parseFloat(getComputedStyle(root).getPropertyValue("--row"));
  let height = tall(), drawn = "";
  const layout = () => {
    const whole = rows.length * height, shown = Math.min(whole, TALLEST);
    space.style.height = `${shown}px`;
    const view = list.clientHeight || 1;
    // A list taller than a browser can hold is squeezed: scrolling then passes more rows per pixel.
    const scroll = shown > view ? (list.scrollTop / (shown - view)) * Math.max(whole - view, 0) : 0;
    const first = Math.max(0, Math.floor(scroll / height) - EXTRA), last = Math.min(rows.length, Math.ceil((scroll + view) / height) + EXTRA);
    const stamp = `${first} ${last} ${active}`;
    const shift = list.scrollTop - scroll;
    if (stamp !== drawn) {
      const made = [];
      for (let place = first; place < last; place += 1) made.push(line(rows[place], place));
      space.replaceChildren(...(rows.length ? made : [make("p", "ev-none", `No ${noun} fits. Clear the filters to see all.`)]));
      drawn = stamp;
    }
    if (rows.length) [...space.children].forEach((element, number) => { element.style.top = `${(first + number) * height + shift}px`; });
    if (rows.length) list.setAttribute("aria-activedescendant", `ev-row-${active}`);
    else list.removeAttribute("aria-activedescendant");
  };
  const move = (place) => {
    if (!rows.length) return;
    active = Math.max(0, Math.min(rows.length - 1, place));
    const whole = rows.length * height, shown = Math.min(whole, TALLEST), view = list.clientHeight;
    const factor = whole > view ? (shown - view) / (whole - view) : 1;
    const now = list.scrollTop / factor, top = active * height;
    if (top < now) list.scrollTop = top * factor;
    else if (top + height > now + view) list.scrollTop = (top + height - view) * factor;
    layout();
  };
  list.addEventListener("scroll", layout, { passive: true });
  new ResizeObserver(() => { height = tall(); heads.style.paddingRight = `${list.offsetWidth - list.clientWidth}px`; drawn = ""; layout(); }).observe(list);
  list.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.floor(list.clientHeight / height) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in steps) move(active + steps[event.key]);
    else if ((event.key === "Enter" || event.key === " ") && rows.length) reveal(active);
    else return;
    event.preventDefault();
  });

  // One case in full.
  const LEGEND = { label: "label", missed: "label that was missed", hit: "right detection", wrong: "wrong detection" };
  const legend = (kinds) => {
    const items = make("ul", "ev-legend");
    Object.keys(LEGEND).filter((kind) => kinds.has(kind)).forEach((kind) => {
      const item = make("li"), sample = draw("svg", { viewBox: "0 0 32 18", "aria-hidden": "true" });
      sample.append(draw("rect", { x: 4, y: 3, width: 24, height: 12, class: `ev-box ${kind}` }));
      item.append(sample, LEGEND[kind]);
      items.append(item);
    });
    return items;
  };
  const reveal = (place) => {
    const row = rows[place];
    state.open = idOf(row);
    part("#ev-title").textContent = `${idOf(row)}`;
    const shots = make("div", "ev-shots"), kinds = new Set();
    const differs = models.some((model) => boxesOf(row, model).length || pictureOf(row, model) !== pictureOf(row, 0));
    (differs ? models : models.slice(0, 1)).forEach((model) => {
      boxesOf(row, model).forEach(({ kind }) => kinds.add(kind));
      const picture = shot(row, model, true);
      if (!picture) return;
      const figure = make("figure");
      figure.append(picture, make("figcaption", "", several && differs ? data.models[model] : `${videoOf(row)} · ${frameOf(row)}`));
      shots.append(figure);
    });
    if (pictured && !shots.children.length) shots.append(make("p", "ev-numbers", "No picture of this frame was kept in the run."));
    const answers = make("div", "ev-answers");
    models.forEach((model) => {
      const holder = make("div");
      const numbers = orders.filter((order) => order.model === model && order.values[row] === order.values[row]).map((order) => `${order.short} ${order.values[row]}`);
      holder.append(make("h4", "", several ? data.models[model] : "Answer"), verdictOf(row, model), make("p", "", said[model].answer(row) ?? "–"));
      if (said[model].reason(row)) holder.append(make("p", "ev-numbers", said[model].reason(row)));
      if (numbers.length) holder.append(make("p", "ev-numbers", numbers.join(" · ")));
      answers.append(holder);
    });
    const own = facets.filter((facet) => !facet.row && facet.at[row] >= 0 && !facet.key.startsWith("verdict")).map((facet) => `${facet.label}: ${facet.of[facet.at[row]]}`);
    const link = make("a", "", `Link to this ${noun}`), fold = make("p", "ev-numbers");
    link.href = `#${new URLSearchParams({ case: idOf(row) })}`;
    fold.append(link);
    part(".ev-body").replaceChildren(shots, ...(kinds.size ? [legend(kinds)] : []), make("h4", "", "Asked"), make("p", "", askedOf(row)),
      ...(referenced ? [make("h4", "", "Reference"), make("p", "", referenceOf(row) || "–")] : []), answers,
      make("h4", "", "About"), make("p", "ev-numbers", [`${videoOf(row)} · ${frameOf(row)}`, ...own].join("\n")), fold);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    remember();
  };
  const go = (step) => { move(active + step); reveal(active); };
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog || "close" in event.target.dataset) dialog.close();
    else if (event.target.dataset.go) go(Number(event.target.dataset.go));
  });
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "ArrowRight" || event.key === "ArrowLeft") { go(event.key === "ArrowRight" ? 1 : -1); event.preventDefault(); }
  });
  dialog.addEventListener("close", () => { state.open = null; remember(); list.focus({ preventScroll: true }); });

  // The address keeps what is shown, so that a link leads to it.
  const remember = () => {
    const said = new URLSearchParams();
    if (state.q) said.set("q", state.q);
    state.facets.forEach((text, key) => said.set(`f.${key}`, text));
    if (state.sort !== data.order) said.set("sort", state.sort);
    if (state.disagree) said.set("disagree", "1");
    if (state.open !== null) said.set("case", state.open);
    const hash = String(said);
    if (hash || location.hash.includes("=")) history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  };
  const controls = () => {
    search.value = state.q;
    disagree.checked = state.disagree;
    sorts.value = state.sort;
    facets.forEach((facet) => {
      const value = state.facets.has(facet.key) ? facet.of.indexOf(state.facets.get(facet.key)) : -1;
      facet.select.value = value < 0 || value >= OPTIONS ? "" : String(value);
    });
  };
  const recall = () => {
    if (!location.hash.includes("=")) return false;
    const said = new URLSearchParams(location.hash.slice(1));
    const known = facets.filter((facet) => facet.of.includes(said.get(`f.${facet.key}`)));
    const sort = said.get("sort") ?? data.order;
    Object.assign(state, {
      q: said.get("q") ?? "", disagree: several && said.has("disagree"),
      sort: [...sorts.options].some((option) => option.value === sort) ? sort : data.order,
      facets: new Map(known.map((facet) => [facet.key, said.get(`f.${facet.key}`)])), open: said.get("case"),
    });
    controls();
    return true;
  };
  const update = () => {
    rows = chosen();
    active = 0;
    list.scrollTop = 0;
    drawn = "";
    layout();
    tally();
    remember();
    tellFilters();
    root.dataset.rows = rows.length;
  };
  const visit = () => {
    if (!recall()) return false;
    const wanted = state.open;
    update();
    root.scrollIntoView();
    if (wanted === null) return true;
    const place = rows.findIndex((row) => idOf(row) === wanted);
    if (place >= 0) { move(place); reveal(place); } else {
      state.open = null;
      part("#ev-title").textContent = `There is no ${noun} ${wanted.slice(0, 80)}`;
      part(".ev-body").replaceChildren(make("p", "", `The address names no ${noun} of this page, or one that its filters leave out. All ${noun}s are in the list.`));
      if (!dialog.open) dialog.showModal();
    }
    return true;
  };
  addEventListener("hashchange", visit);

  // On paper: the first rows as a plain table.
  const paper = () => {
    const table = make("table"), head = make("tr"), body = make("tbody"), top = make("thead");
    head.append(...["Case", "Asked", ...(referenced ? ["Reference"] : []), ...data.models].map((text) => make("th", "", text)));
    top.append(head);
    rows.slice(0, PRINTED).forEach((row) => {
      const printed = make("tr");
      printed.append(...[idOf(row), askedOf(row), ...(referenced ? [referenceOf(row)] : [])].map((text) => make("td", "", text)));
      models.forEach((model) => {
        const holder = make("td");
        holder.append(verdictOf(row, model), said[model].answer(row) ?? "–");
        printed.append(holder);
      });
      body.append(printed);
    });
    table.append(top, body);
    const shown = Math.min(PRINTED, rows.length);
    part(".ev-print").replaceChildren(make("p", "", shown < rows.length ? `The first ${shown} of ${spaced(rows.length)} ${noun}s; the page itself shows all.` : `All ${shown} ${noun}s.`), table);
  };
  addEventListener("beforeprint", paper);
  matchMedia("print").addEventListener("change", (media) => { if (media.matches) paper(); });

  controls();
  if (!visit()) update();
  root.dataset.ready = Math.round(performance.now());
  root.dataset.took = Math.round(performance.now() - began);
  (window.requestIdleCallback ?? setTimeout)(hay);
});
