"use strict";
// Still pictures stand in the page from the start. Where scripts run, interactive ones take their place.
(function () {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const style = () => getComputedStyle(document.documentElement);

  function colour(plot) {
    const value = (name) => style().getPropertyValue(name).trim();
    for (const axis of [...plot.below, ...plot.left, ...plot.above, ...plot.right]) {
      if ("major_label_text_color" in axis) {
        axis.major_label_text_color = value("--quiet");
        axis.axis_label_text_color = value("--ink");
        axis.axis_line_color = value("--quiet");
        axis.major_tick_line_color = value("--quiet");
        axis.minor_tick_line_color = null;
      }
      if ("label_text_color" in axis) axis.label_text_color = value("--ink");
    }
    for (const part of plot.center) {
      if ("grid_line_color" in part && part.grid_line_color !== null) part.grid_line_color = value("--grid");
      if ("label_text_color" in part) part.label_text_color = value("--ink");
    }
  }

  function choose(plot, axis, field, title) {
    for (const renderer of plot.renderers) {
      if (renderer.name !== "points" && renderer.name !== "line") continue;
      const glyph = renderer.glyph;
      if (renderer.name === "line" && "x1" in glyph) glyph[axis + "1"] = { field };
      else if ("top" in glyph && axis === "y") glyph.top = { field };
      else glyph[axis] = { field };
    }
    const shown = axis === "x" ? plot.below : plot.left;
    for (const one of shown) if ("axis_label" in one) one.axis_label = title;
    plot.reset.emit();
  }

  async function show(element) {
    const name = element.dataset.chart;
    const place = document.getElementById("live-" + name);
    const figure = document.getElementById("chart-" + name);
    const still = figure.querySelector(".still");
    const controls = figure.querySelector(".choices");
    place.hidden = false;
    const views = await Bokeh.embed.embed_item(JSON.parse(element.textContent));
    const view = [...views][0] ?? views;
    const plot = (view.model ?? view).document.roots()[0];
    colour(plot);
    dark.addEventListener("change", () => colour(plot));
    for (const select of controls.querySelectorAll("select")) {
      select.addEventListener("change", () => {
        const option = select.selectedOptions[0];
        choose(plot, select.dataset.axis, option.value, option.dataset.title);
      });
    }
    const button = controls.querySelector("button");
    button.addEventListener("click", () => {
      still.hidden = !still.hidden;
      place.hidden = !place.hidden;
      button.setAttribute("aria-pressed", String(place.hidden));
    });
    controls.hidden = false;
    still.hidden = true;
    figure.dataset.live = "yes";
  }

  const waiting = [...document.querySelectorAll("script.item")].map((element) =>
    show(element).catch((error) => {
      // The still picture stays.
      document.getElementById("live-" + element.dataset.chart).hidden = true;
      console.error("the interactive picture cannot be shown:", error.message);
    })
  );
  Promise.all(waiting).then(() => { document.documentElement.dataset.ready = "yes"; });
})();
