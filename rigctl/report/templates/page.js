(function () {
  "use strict";
  var drawings = JSON.parse(document.getElementById("drawings").textContent);
  var dashes = ["solid", "dash", "dot", "dashdot"];

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  }

  // Elapsed seconds are drawn as a date near 1970, so that the axis reads 0:30, 1:00, 1:30.
  function clock(seconds) {
    return new Date(seconds * 1000).toISOString().slice(0, 23).replace("T", " ");
  }

  function traces(chart) {
    return chart.series.map(function (series) {
      var hue = series.slot === 0 ? 0 : ((series.slot - 1) % 8) + 1;
      return {
        type: "scatter",
        mode: "lines",
        name: series.name,
        x: series.x.map(clock),
        y: series.y,
        connectgaps: false,
        line: { color: colour("series-" + hue), width: 2, dash: series.slot === 0 ? "solid" : dashes[Math.floor((series.slot - 1) / 8) % 4] },
        hovertemplate: "%{y} " + chart.unit
      };
    });
  }

  function bands(rig, width) {
    var shapes = [], words = [];
    rig.steps.forEach(function (step, n) {
      if (n % 2 === 1) {
        shapes.push({ type: "rect", xref: "x", yref: "paper", x0: clock(step.from), x1: clock(step.to), y0: 0, y1: 1, fillcolor: colour("band"), line: { width: 0 }, layer: "below" });
      }
      if ((step.to - step.from) / rig.length * width > step.name.length * 7) {
        words.push({ xref: "x", yref: "paper", x: clock((step.from + step.to) / 2), y: 1, yanchor: "bottom", text: step.name, showarrow: false, font: { size: 11, color: colour("faint") } });
      }
    });
    rig.marks.forEach(function (mark) {
      shapes.push({ type: "line", xref: "x", yref: "paper", x0: clock(mark.x), x1: clock(mark.x), y0: 0, y1: 1, line: { color: colour("error"), width: 1.5 } });
      words.push({ xref: "x", yref: "paper", x: clock(mark.x), y: 0.02, yanchor: "bottom", xanchor: "left", text: mark.text, showarrow: false, font: { size: 11, color: colour("error") } });
    });
    return { shapes: shapes, words: words };
  }

  // Limits are curves of their own, so that their names stand in the legend and never on a curve.
  function limits(rig, chart) {
    return chart.limits.map(function (limit, n) {
      return {
        type: "scatter",
        mode: "lines",
        name: limit.name + " " + limit.y + " " + chart.unit,
        x: [clock(0), clock(rig.length)],
        y: [limit.y, limit.y],
        hoverinfo: "skip",
        line: { color: colour(n === 0 ? "fail" : "warn"), width: 1.5, dash: n === 0 ? "dash" : "dot" }
      };
    });
  }

  function layout(rig, chart, width) {
    var made = bands(rig, width - 70);
    var axis = { color: colour("faint"), gridcolor: colour("rule"), zeroline: false, fixedrange: width < 600 };
    return {
      margin: { l: 44, r: 12, t: 26, b: 56 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, sans-serif", size: 12, color: colour("ink") },
      hovermode: "x unified",
      hoverlabel: { bgcolor: colour("sheet"), bordercolor: colour("rule"), font: { color: colour("ink") } },
      showlegend: true,
      legend: { orientation: "h", x: 0, y: -0.16, yanchor: "top" },
      xaxis: Object.assign({ type: "date", tickformat: rig.length < 3600 ? "%-M:%S" : "%-H:%M", hoverformat: "%H:%M:%S", nticks: Math.max(3, Math.floor(width / 110)) }, axis),
      yaxis: Object.assign({ rangemode: "normal", ticksuffix: "" }, axis),
      shapes: made.shapes,
      annotations: made.words
    };
  }

  function draw(place) {
    var rig = drawings[place.dataset.rig];
    var chart = rig.charts[Number(place.dataset.chart)];
    Plotly.react(place, traces(chart).concat(limits(rig, chart)), layout(rig, chart, place.clientWidth), { displaylogo: false, responsive: true, displayModeBar: false });
    place.dataset.drawn = "yes";
  }

  var places = Array.prototype.slice.call(document.querySelectorAll(".chart"));
  function drawMissing() {
    places.forEach(function (place) { if (!place.dataset.drawn) { draw(place); } });
  }
  function drawAgain() {
    places.forEach(function (place) { if (place.dataset.drawn) { draw(place); } });
  }
  if ("IntersectionObserver" in window) {
    var watcher = new IntersectionObserver(function (entries) {
      entries.forEach(function (entry) {
        if (entry.isIntersecting && !entry.target.dataset.drawn) { draw(entry.target); }
      });
    }, { rootMargin: "800px" });
    places.forEach(function (place) { watcher.observe(place); });
  } else {
    drawMissing();
  }
  window.addEventListener("beforeprint", drawMissing);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAgain);
  document.documentElement.classList.add("drawn");

  var filter = document.querySelector(".filter");
  var words = document.getElementById("words");
  var buttons = Array.prototype.slice.call(filter.querySelectorAll("button"));
  var rows = Array.prototype.slice.call(document.querySelectorAll(".verdicts tbody tr"));
  filter.hidden = false;

  function apply() {
    var asked = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    var kinds = buttons.filter(function (b) { return b.getAttribute("aria-pressed") === "true"; }).map(function (b) { return b.dataset.verdict; });
    var shown = 0;
    rows.forEach(function (row) {
      var text = row.textContent.toLowerCase();
      var fits = (kinds.length === 0 || kinds.indexOf(row.dataset.verdict) >= 0) && asked.every(function (w) { return text.indexOf(w) >= 0; });
      row.hidden = !fits;
      if (fits) { shown += 1; }
    });
    document.getElementById("shown").textContent = shown === rows.length ? rows.length + " verdicts" : shown + " of " + rows.length + " verdicts";
  }
  buttons.forEach(function (button) {
    button.addEventListener("click", function () {
      button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") === "true" ? "false" : "true");
      apply();
    });
  });
  words.addEventListener("input", apply);

  // A link to a verdict that the filter hides shows it again.
  window.addEventListener("hashchange", function () {
    var target = document.getElementById(location.hash.slice(1));
    if (target && target.hidden) {
      words.value = "";
      buttons.forEach(function (b) { b.setAttribute("aria-pressed", "false"); });
      apply();
      target.scrollIntoView();
    }
  });
})();
