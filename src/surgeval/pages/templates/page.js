"use strict";
(() => {
  const darkScreen = matchMedia("(prefers-color-scheme: dark)");
  const inks = {
    light: { text: "#3c4652", line: "#dde2e7", back: "#fcfcfa", hover: "#1d2530", hoverText: "#ffffff" },
    dark: { text: "#b3bdc9", line: "#2c343e", back: "#12161b", hover: "#e4e8ed", hoverText: "#12161b" },
  };
  const config = { displayModeBar: false, responsive: true, doubleClick: false, showTips: false };

  // Texts arrive escaped for plotly's markup; they are unescaped only to be cut between characters.
  const cut = (text, most) => {
    const letters = [...text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&")];
    if (letters.length <= most) return text;
    const tail = Math.floor((most - 1) / 2);
    const short = [...letters.slice(0, most - 1 - tail), "…", ...letters.slice(-tail)].join("");
    return short.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  };

  // The colour of a scale at a share from 0 to 1, as [r, g, b], and the ink that is read best on it.
  const shade = (scale, share) => {
    const after = Math.max(1, scale.findIndex(([stop]) => stop >= share));
    const [[low, first], [high, second]] = [scale[after - 1], scale[after]];
    const part = (share - low) / (high - low);
    const channel = (text, k) => parseInt(text.slice(1 + 2 * k, 3 + 2 * k), 16);
    return [0, 1, 2].map((k) => (1 - part) * channel(first, k) + part * channel(second, k));
  };
  const inkOn = (rgb) => {
    const [r, g, b] = rgb.map((value) => (value <= 10 ? value / 3294 : ((value / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff"; // equally far from both at 0.179
  };

  const column = (trace, width) => (width - 130) / trace.z[0].length; // pixels, about

  // A map of amounts runs away from the background: dark for much on white, light for much on black. Colours that
  // mean something by themselves (blue: better) are the same in every light.
  const heatmap = (trace, width, dark) => {
    const scale = dark && trace.meta === "amounts" ? trace.colorscale.map(([stop], k, all) => [stop, all[all.length - 1 - k][1]]) : trace.colorscale;
    const cells = { ...trace, colorscale: scale, texttemplate: "" };
    if (!trace.texttemplate || column(trace, width) < 36) return [cells]; // a number of four digits
    const texts = ["#000000", "#ffffff"].map((color) => ({
      type: "scatter", mode: "text", x: [], y: [], text: [], textfont: { size: 11, color }, hoverinfo: "skip", showlegend: false,
    }));
    trace.z.forEach((row, y) => row.forEach((value, x) => {
      if (value === null || !trace.text[y][x]) return;
      const share = Math.min(1, Math.max(0, (value - trace.zmin) / (trace.zmax - trace.zmin || 1)));
      const list = texts[inkOn(shade(scale, share)) === "#000000" ? 0 : 1];
      list.x.push(x); list.y.push(y); list.text.push(trace.text[y][x]);
    }));
    return [cells, ...texts];
  };

  const dress = (spec, width, dark) => {
    const ink = dark ? inks.dark : inks.light;
    const narrow = width < 480;
    const family = getComputedStyle(document.body).fontFamily;
    const axis = (own) => ({
      ...own,
      gridcolor: ink.line, linecolor: ink.line, tickcolor: ink.line, tickfont: { size: narrow ? 10 : 11.5 },
      ...(own.title ? { title: { text: own.title.text, standoff: 8, font: { size: 12 } } } : {}),
      ...(own.ticktext ? { ticktext: own.ticktext.map((text) => cut(text, Math.max(14, Math.floor(width / 17)))) } : {}),
    });
    const columns = spec.data[0]?.type === "heatmap" ? column(spec.data[0], width) : Infinity;
    // Names over narrow columns stand upright, no larger than their column, so that they do not cover each other.
    const upright = columns < 18 ? { tickangle: -90, tickfont: { size: Math.max(6, Math.min(10, Math.floor(columns))) } } : {};
    const axes = Object.keys(spec.layout).filter((name) => /^[xy]axis/.test(name));
    return {
      data: spec.data.flatMap((trace) => {
        if (trace.type === "heatmap") return heatmap(trace, width, dark);
        if (trace.meta !== "ink") return [{ ...trace }];
        return [{ ...trace, marker: { ...trace.marker, line: { ...trace.marker.line, color: ink.text } } }];
      }),
      layout: {
        ...spec.layout,
        ...Object.fromEntries(axes.map((name) => [name, { ...axis(spec.layout[name]), ...(name === "xaxis" ? upright : {}) }])),
        font: { family, color: ink.text, size: 12 },
        paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
        margin: { l: 8, r: 12, t: 12, b: 8, ...spec.layout.margin },
        legend: { orientation: "h", x: 0, xanchor: "left", y: 1, yanchor: "bottom", traceorder: "normal", font: { size: 11.5 } },
        hoverlabel: { bgcolor: ink.hover, bordercolor: ink.hover, font: { color: ink.hoverText, family, size: 12 }, align: "left" },
        dragmode: false, hovermode: "closest", autosize: true,
      },
    };
  };

  const plots = [...document.querySelectorAll("figure.plot")].map((figure) => ({
    canvas: figure.querySelector(".canvas"),
    spec: JSON.parse(figure.querySelector("script").textContent),
  }));
  const draw = ({ canvas, spec }, dark) => {
    // On a narrow screen each name of the legend takes a line of its own.
    const names = spec.data.filter((trace) => trace.showlegend).length;
    const height = spec.layout.height + (canvas.clientWidth < 480 && names > 1 ? 19 * (names - 1) : 0);
    canvas.style.height = `${height}px`;
    const { data, layout } = dress({ ...spec, layout: { ...spec.layout, height } }, canvas.clientWidth, dark);
    return Plotly.newPlot(canvas, data, layout, config); // afresh: the margins of another width would stay
  };
  const drawn = plots.length > 0 && typeof Plotly === "object";
  const drawAll = (dark) => Promise.all(drawn ? plots.map((plot) => draw(plot, dark)) : []);
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
    drawAll(false);
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
  addEventListener("resize", () => {
    if ((width < 640) !== (innerWidth < 640)) redraw();
    width = innerWidth;
  });
  redraw().then(() => root.setAttribute("data-drawn", String(drawn ? plots.length : 0)));
})();
