"use strict";
// Still pictures stand in the page from the start. Where scripts run, interactive ones take their place.
(function () {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const narrow = window.matchMedia("(max-width: 40rem)");
  const style = () => getComputedStyle(document.documentElement);

  function colour(plot) {
    const value = (name) => style().getPropertyValue(name).trim();
    for (const { name, glyph } of plot.renderers) if (name === "words") glyph.text_color = value("--ink");
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

  // On a small screen the tools stand above the picture, and a legend has two columns.
  function fit(plot) {
    plot.toolbar_location = narrow.matches ? "above" : "right";
    for (const part of plot.below) {
      if (part.orientation !== "horizontal" || !part.items) continue;
      const longest = Math.max(...part.items.map((one) => (one.label.value ?? "").length));
      part.ncols = Math.min(narrow.matches ? (longest > 16 ? 1 : 2) : 4, part.items.length);
    }
  }

  // A circle is round: both axes show as many pixels for one.
  function round(plot) {
    const [wide, high, reach] = [plot.inner_width, plot.inner_height, 1.25];
    if (!wide || !high) return;
    plot.x_range.setv({ start: -reach * Math.max(1, wide / high), end: reach * Math.max(1, wide / high) });
    plot.y_range.setv({ start: -reach * Math.max(1, high / wide), end: reach * Math.max(1, high / wide) });
  }

  // What stands on the axes is the choice of both selects: an ellipse's heights depend on what is across.
  function choose(plot, controls) {
    const chosen = {};
    for (const select of controls.querySelectorAll("select")) {
      const option = select.selectedOptions[0];
      chosen[select.dataset.axis] = option.value;
      const axes = select.dataset.axis === "x" ? plot.below : plot.left;
      for (const one of axes) if ("axis_label" in one) one.axis_label = option.dataset.title;
    }
    for (const { name, glyph } of plot.renderers) {
      if (name === "outline") {
        glyph.x = { field: chosen.x };
        glyph.y = { field: chosen.y + "|" + chosen.x };
      } else if (["points", "words", "line"].includes(name)) {
        for (const [axis, field] of Object.entries(chosen)) {
          const place = "x1" in glyph ? axis + "1" : "top" in glyph && axis === "y" ? "top" : axis;
          glyph[place] = { field };
        }
      }
    }
    plot.reset.emit();
    if (plot.tags.includes("equal")) round(plot);
  }

  let library = null;
  // Half a second of work, for which nobody should wait who only reads.
  function bokeh() {
    library ??= new Promise((done, failed) => {
      const script = document.createElement("script");
      script.textContent = document.getElementById("library").textContent;
      document.head.append(script); // runs at once
      if (window.Bokeh) done(window.Bokeh);
      else failed(new Error("the plotting library did not start"));
    });
    return library;
  }

  async function show(figure) {
    const name = figure.id.slice("chart-".length);
    const place = document.getElementById("live-" + name);
    const still = figure.querySelector(".still");
    const controls = figure.querySelector(".choices");
    const item = JSON.parse(document.getElementById("item-" + name).textContent);
    const { embed, require } = await bokeh();
    const made = require("document").Document.from_json(item.doc);
    const plot = made.roots()[0];
    // Before it is drawn, so that it is laid out and painted once.
    colour(plot);
    fit(plot);
    place.hidden = false;
    await embed.add_document_standalone(made, place, [place]);
    narrow.addEventListener("change", () => fit(plot));
    if (plot.tags.includes("equal")) {
      round(plot);
      plot.properties.inner_width.change.connect(() => round(plot));
      plot.properties.inner_height.change.connect(() => round(plot));
    }
    dark.addEventListener("change", () => colour(plot));
    for (const select of controls.querySelectorAll("select")) {
      select.addEventListener("change", () => choose(plot, controls));
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

  function shown(figure) {
    return show(figure).catch((error) => {
      // The still picture stays.
      document.getElementById("live-" + figure.id.slice("chart-".length)).hidden = true;
      console.error("the interactive picture cannot be shown:", error.message);
    });
  }

  // A figure becomes interactive when a reader comes near it; ready is the page when those near its top are.
  let last = Promise.resolve();
  const near = new IntersectionObserver((seen) => {
    for (const { target } of seen.filter((one) => one.isIntersecting)) {
      near.unobserve(target);
      last = last.then(() => shown(target)); // one after the other
    }
    last.then(() => { document.documentElement.dataset.ready = "yes"; });
  }, { rootMargin: "25% 0px" });
  for (const figure of document.querySelectorAll("figure:has(.live)")) near.observe(figure);
})();
