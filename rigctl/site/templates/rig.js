// Draws the curves of a rig's page with plotly, which lies beside it. Colours are those of the page, light or dark.
(function () {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  function draw() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    data.forEach((chart, number) => {
      const lines = chart.series.map((one, index) => ({
        x: one.x, y: one.y, name: one.name, type: "scatter", mode: "lines+markers",
        marker: { size: 4 }, line: { width: 1.5, color: colour("--series-" + (1 + (index % 8))) },
      }));
      const layout = {
        margin: { l: 50, r: 10, t: 10, b: 35 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
        font: { color: colour("--ink"), size: 12 }, showlegend: chart.series.length > 1,
        legend: { orientation: "h", y: 1.15 },
        xaxis: { gridcolor: colour("--rule") }, yaxis: { gridcolor: colour("--rule"), zeroline: false },
        shapes: chart.limit === null ? [] : [{
          type: "line", xref: "paper", x0: 0, x1: 1, y0: chart.limit, y1: chart.limit,
          line: { dash: "dot", width: 1, color: colour("--fail") },
        }],
      };
      window.Plotly.react("chart-" + number, lines, layout, { displaylogo: false, responsive: true });
    });
    document.documentElement.classList.add("drawn");
  }
  if (window.Plotly) {
    draw();
    dark.addEventListener("change", draw);
  }
}());
