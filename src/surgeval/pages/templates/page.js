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
    return {
      data: spec.data.map((trace) => {
        if (trace.type !== "heatmap") return { ...trace };
        const room = (width - 130) / trace.z[0].length; // a number of four digits needs about 36 pixels
        return { ...trace, reversescale: dark, ...(room < 36 ? { texttemplate: "" } : {}) };
      }),
      layout: {
        ...spec.layout,
        xaxis: axis(spec.layout.xaxis), yaxis: axis(spec.layout.yaxis),
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
    return Plotly.react(canvas, data, layout, config);
  };
  const drawAll = (dark) => Promise.all(plots.map((plot) => draw(plot, dark)));

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

  if (plots.length) {
    darkScreen.addEventListener("change", () => drawAll(darkScreen.matches));
    let width = innerWidth;
    addEventListener("resize", () => {
      if ((width < 640) !== (innerWidth < 640)) drawAll(darkScreen.matches);
      width = innerWidth;
    });
  }
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    closed.forEach((details) => { details.open = true; });
    if (plots.length) drawAll(false);
  });
  addEventListener("afterprint", () => {
    closed.forEach((details) => { details.open = false; });
    if (plots.length) drawAll(darkScreen.matches);
  });
  drawAll(darkScreen.matches).then(() => document.documentElement.setAttribute("data-drawn", String(plots.length)));
})();
