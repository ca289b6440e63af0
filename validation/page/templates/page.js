"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");

  // Colours: as the system, light, dark.
  const themes = [["", "as the system"], ["light", "light"], ["dark", "dark"]];
  const theme = document.getElementById("theme");
  let chosen = 0;
  theme.addEventListener("click", () => {
    chosen = (chosen + 1) % themes.length;
    if (themes[chosen][0]) root.dataset.theme = themes[chosen][0];
    else delete root.dataset.theme;
    theme.textContent = `Colours: ${themes[chosen][1]}`;
  });

  // Contents: open beside the page, folded above it.
  const contents = document.getElementById("contents");
  const beside = matchMedia("(min-width:75rem)");
  const place = () => {
    contents.open = beside.matches;
  };
  beside.addEventListener("change", place);
  place();
  contents.addEventListener("click", (event) => {
    if (event.target.closest("a") && !beside.matches) contents.open = false;
  });

  // A table that is wider than the page says so.
  const scrolls = [...document.querySelectorAll(".scroll")];
  const measure = () => {
    const wider = scrolls.map((part) => part.scrollWidth > part.clientWidth + 1);
    scrolls.forEach((part, i) => part.classList.toggle("wider", wider[i]));
  };
  addEventListener("resize", measure);
  addEventListener("toggle", measure, true);
  measure();

  // Copy code.
  for (const button of document.querySelectorAll("button.copy")) {
    button.addEventListener("click", async () => {
      const code = button.closest(".code").querySelector("pre").textContent;
      try {
        await navigator.clipboard.writeText(code);
        button.textContent = "Copied";
      } catch {
        const range = document.createRange();
        range.selectNodeContents(button.closest(".code").querySelector("pre"));
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        button.textContent = "Selected: press Ctrl+C";
      }
    });
  }

  // Sort a table by a column, filter its rows by their name.
  for (const table of document.querySelectorAll("table[data-sortable]")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const first = table.tBodies[0].rows[0]?.cells[column];
      if (!first || (first.querySelector("svg") && column)) return;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => sort(table, heads, column));
    });
  }
  function sort(table, heads, column) {
    const down = heads[column].getAttribute("aria-sort") === "ascending";
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[column].setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
    const compare = (a, b) => {
      const [x, y] = [value(a), value(b)];
      const gap = Number(x) - Number(y);
      return Number.isNaN(gap) ? x.localeCompare(y, undefined, { numeric: true }) : gap;
    };
    const rows = [...table.tBodies[0].rows].sort((a, b) => (down ? compare(b, a) : compare(a, b)));
    table.tBodies[0].append(...rows);
  }
  for (const input of document.querySelectorAll("input[data-filters]")) {
    const rows = [...document.getElementById(input.dataset.filters).tBodies[0].rows];
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      for (const row of rows) {
        row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
      }
    });
  }

  // Read a picture: the pointer, or a slider for the keyboard, turns a position into words.
  // A place on an axis is told in steps of the axis: from 2023.9 to 2024.1 three digits say nothing.
  const format = (value, span = 0) => {
    if (!Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    const step = span > 0 ? Math.floor(Math.log10(span)) : 0;
    const large = size ? Math.floor(Math.log10(size)) : 0;
    const digits = span > 0 ? Math.min(15, Math.max(1, large - step + 3)) : 3;
    const text = size && (size < 1e-3 || size >= 1e6)
      ? value.toExponential(digits - 1)
      : value.toLocaleString("en", { maximumSignificantDigits: digits });
    return text.replace("-", "−");
  };
  for (const picture of document.querySelectorAll(".picture[data-readout]")) {
    const data = JSON.parse(picture.dataset.readout);
    const line = document.createElement("span");
    const says = document.createElement("span");
    const slide = document.createElement("input");
    line.className = "reader";
    says.className = "says";
    slide.className = "slide";
    line.hidden = says.hidden = true;
    const steps = data.whole ? data.high - data.low : 100;
    Object.assign(slide, { type: "range", min: 0, max: steps, step: 1, value: Math.round(steps / 2) });
    slide.setAttribute("aria-label", `Read values along ${data.name}`);
    slide.style.left = `${100 * data.left}%`;
    slide.style.width = `${100 * (data.right - data.left)}%`;
    const holder = document.createElement("div");
    holder.style.position = "relative";
    picture.replaceWith(holder);
    holder.append(picture, line, says, slide);
    const show = (share) => {
      let at = Math.min(1, Math.max(0, share));
      if (data.whole && steps > 0) at = Math.round(at * steps) / steps;
      const where = data.low + at * (data.high - data.low);
      const words = data.series.map((one) => {
        const place = at * (one.values.length - 1);
        const low = Math.floor(place);
        const high = Math.min(low + 1, one.values.length - 1);
        const value = one.values[low] + (place - low) * (one.values[high] - one.values[low]);
        return `${one.name} ${one.percent ? Math.round(100 * value) + " %" : format(value)}`;
      });
      const here = data.whole
        ? Math.round(where).toLocaleString("en")
        : format(where, data.high - data.low);
      says.textContent = [`${data.name} ${here}`, ...words].join(" · ");
      slide.setAttribute("aria-valuetext", says.textContent);
      line.hidden = says.hidden = false;
      const x = data.left + at * (data.right - data.left);
      line.style.left = `${100 * x}%`;
      const room = holder.clientWidth - says.offsetWidth;
      says.style.left = `${Math.max(0, Math.min(room, x * holder.clientWidth - says.offsetWidth / 2))}px`;
    };
    const hide = () => {
      line.hidden = says.hidden = true;
    };
    holder.addEventListener("pointermove", (event) => {
      const box = holder.getBoundingClientRect();
      const share = (event.clientX - box.left) / box.width;
      show((share - data.left) / (data.right - data.left));
    });
    holder.addEventListener("pointerleave", () => {
      if (document.activeElement !== slide) hide();
    });
    slide.addEventListener("input", () => show(slide.value / Math.max(1, slide.max)));
    slide.addEventListener("focus", () => {
      if (slide.matches(":focus-visible")) show(slide.value / Math.max(1, slide.max));
    });
    slide.addEventListener("blur", hide);
  }
})();
