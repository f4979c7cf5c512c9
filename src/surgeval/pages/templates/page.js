"use strict";
(() => {
  const darkScreen = matchMedia("(prefers-color-scheme: dark)");

  // What of a figure depends on its width, as `fitting` in figures/theme.py says it for paper.
  const fitting = (meta, width) => {
    const config = { axisYDiscrete: { labelLimit: Math.max(150, Math.round(0.36 * width)) } };
    if (meta.legend) {
      const room = width - Math.min(meta.legend.aside, Math.max(150, Math.round(0.36 * width)) + 20);
      config.legend = { columns: Math.min(Math.max(1, Math.floor(room / meta.legend.width)), meta.legend.entries) };
    }
    const upright = width < (meta.upright ?? 0);
    if (meta.numbers) {
      config.axisXDiscrete = { labelAngle: upright ? -90 : -45, labelLimit: 150 };
      if (width < meta.numbers) config.style = Object.fromEntries(["low", "middle", "high", "cell"].map((name) => [name, { opacity: 0 }]));
    } else if (meta.slant) {
      config.axisXDiscrete = { labelAngle: upright ? -90 : width < meta.slant ? -35 : 0, labelLimit: 170 };
    }
    return config;
  };
  const merge = (base, more) => {
    const both = { ...base };
    const nested = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
    for (const [key, value] of Object.entries(more)) both[key] = nested(both[key]) && nested(value) ? merge(both[key], value) : value;
    return both;
  };

  const plots = [...document.querySelectorAll("figure.plot")].map((figure) => ({
    canvas: figure.querySelector(".canvas"),
    alt: figure.querySelector(".canvas").getAttribute("aria-label"),
    spec: JSON.parse(figure.querySelector("script").textContent),
    view: null,
  }));
  const drawn = plots.length > 0 && typeof vegaEmbed === "function";
  const themes = drawn ? JSON.parse(document.getElementById("themes").textContent) : {};
  const draw = async (plot, dark) => {
    const { canvas, alt } = plot;
    const spec = { ...plot.spec, description: alt }; // Vega takes it for the label of the canvas
    const width = canvas.clientWidth;
    const meta = spec.usermeta ?? {};
    const sized = spec.vconcat
      ? { ...spec, vconcat: spec.vconcat.map((part) => ({ ...part, width: Math.max(120, width - meta.inset) })) }
      : { ...spec, width, autosize: { type: "fit-x", contains: "padding" } };
    const page = { background: null, padding: { left: 2, top: 4, right: meta.numbers ? 20 : 12, bottom: 2 }, font: getComputedStyle(document.body).fontFamily };
    const config = merge(merge(themes[dark ? "dark" : "light"], page), fitting(meta, width));
    plot.view?.finalize();
    // `ast`: Vega reads its expressions with an interpreter, because the page's policy forbids `eval`.
    const made = await vegaEmbed(canvas, sized, {
      mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false, config,
      tooltip: { disableDefaultStyle: true, theme: "page" },
    });
    plot.view = made.view;
  };
  // On a screen the browser may act between two figures; before printing, all must be there when the handler ends.
  let round = 0;
  const drawAll = async (dark, pause = true) => {
    const own = ++round;
    for (const plot of drawn ? plots : []) {
      if (pause) await new Promise((next) => setTimeout(next));
      if (own !== round) return; // a later call draws everything again
      await draw(plot, dark);
    }
  };
  if (plots.length && !drawn) {
    const file = document.querySelector("script[src]").getAttribute("src");
    plots.forEach(({ canvas }) => {
      canvas.classList.add("undrawn");
      canvas.textContent = `This figure is not drawn: the file ${file}, which belongs beside this page, cannot be read. Its numbers are in the tables.`;
    });
  }

  const order = (table, column, descending) => {
    const body = table.tBodies[0];
    const numeric = table.tHead.rows[0].cells[column].classList.contains("n");
    const key = (row) => {
      const cell = row.cells[column];
      if (!numeric) return cell.textContent;
      return cell.dataset.v === undefined ? null : Number(cell.dataset.v);
    };
    const sign = descending ? -1 : 1;
    const rows = [...body.rows].map((row) => [key(row), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null); // what is not known stays last
      return sign * (numeric ? a - b : a.localeCompare(b, undefined, { numeric: true }));
    });
    body.append(...rows.map(([, row]) => row));
  };
  document.querySelectorAll("table").forEach((table) => {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      head.querySelector("button").addEventListener("click", () => {
        const first = head.classList.contains("n") ? "descending" : "ascending";
        const second = first === "descending" ? "ascending" : "descending";
        const way = head.getAttribute("aria-sort") === first ? second : first;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", way);
        order(table, column, way === "descending");
      });
    });
  });

  document.querySelectorAll(".gallery").forEach((gallery) => {
    const choice = gallery.querySelector("select");
    if (!choice) return;
    const cards = gallery.querySelector(".cards");
    const arrange = () => {
      const key = (card) => { const value = card.dataset[`k${choice.value}`]; return value === undefined ? -Number.MAX_VALUE : Number(value); };
      cards.append(...[...cards.children].sort((a, b) => key(b) - key(a)));
    };
    choice.addEventListener("change", arrange);
    arrange();
  });

  const links = new Map([...document.querySelectorAll(".contents a")].map((link) => [link.hash.slice(1), link]));
  const seen = new Set();
  const watch = new IntersectionObserver((entries) => {
    entries.forEach((entry) => (entry.isIntersecting ? seen.add(entry.target) : seen.delete(entry.target)));
    const current = [...seen].sort((a, b) => a.offsetTop - b.offsetTop)[0];
    if (!current) return;
    links.forEach((link, id) => (id === current.id ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current")));
  }, { rootMargin: "0px 0px -60% 0px" });
  document.querySelectorAll("section").forEach((section) => watch.observe(section));

  const contents = document.querySelector(".contents details");
  if (matchMedia("(max-width: 72rem)").matches) contents.open = false;

  // Paper is another width and always light, so everything is laid out for it before it is printed: figures are drawn
  // again, folded tables are opened, and a table that is too wide gets smaller letters instead of broken words.
  const root = document.documentElement;
  const smallest = 5.5, small = 6.5, usual = 7.5; // points
  const fit = (table) => {
    const room = table.parentElement.clientWidth;
    const size = () => {
      table.classList.add("measured");
      const fitting = (usual * room) / table.offsetWidth;
      table.classList.remove("measured");
      return Math.floor(100 * Math.min(usual, fitting)) / 100;
    };
    if (size() < small) table.classList.add("upright"); // heads of numbers stand on end
    table.style.fontSize = `${Math.max(smallest, size())}pt`;
    if (size() < smallest) table.classList.add("crowded"); // only now may a word break
  };
  let closed = [];
  const toPaper = () => {
    if (root.classList.contains("paper")) return;
    root.classList.add("paper");
    closed = [...document.querySelectorAll("details:not([open])")];
    closed.forEach((details) => { details.open = true; });
    document.querySelectorAll("table").forEach(fit);
    drawAll(false, false);
  };
  const toScreen = () => {
    if (!root.classList.contains("paper")) return;
    root.classList.remove("paper");
    closed.forEach((details) => { details.open = false; });
    document.querySelectorAll("table").forEach((table) => { table.style.fontSize = ""; table.classList.remove("upright", "crowded"); });
    drawAll(darkScreen.matches);
  };
  addEventListener("beforeprint", toPaper);
  addEventListener("afterprint", toScreen);
  const printing = matchMedia("print");
  printing.addEventListener("change", () => (printing.matches ? toPaper() : toScreen()));

  const redraw = () => drawAll(darkScreen.matches && !root.classList.contains("paper"));
  darkScreen.addEventListener("change", redraw);
  let width = innerWidth;
  let waiting;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      if (width !== innerWidth) redraw();
      width = innerWidth;
    }, 150);
  });
  redraw().then(() => root.setAttribute("data-drawn", String(drawn ? plots.length : 0)));
})();
