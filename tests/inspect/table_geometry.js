// What is wrong with a page of charts as it is shown: clipped, small or faint text, texts that meet, what is outside the page.
(() => {
  const found = [], of = (element) => element.getBoundingClientRect(), name = (element) => element.textContent.slice(0, 40);
  const meet = (a, b) => a.left < b.right - 0.6 && b.left < a.right - 0.6 && a.top < b.bottom - 0.6 && b.top < a.bottom - 0.6;
  const channels = (colour) => colour.match(/[\d.]+/g).slice(0, 3).map((each) => each / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  const brightness = (colour) => { const [red, green, blue] = channels(colour); return 0.2126 * red + 0.7152 * green + 0.0722 * blue; };
  const behind = (element) => {
    for (let up = element; up; up = up.parentElement) {
      const colour = getComputedStyle(up).backgroundColor;
      if (!/, 0\)$/.test(colour)) return colour;
    }
    return matchMedia("(prefers-color-scheme: dark)").matches ? "rgb(18, 18, 18)" : "rgb(255, 255, 255)";
  };
  const texts = [...document.body.querySelectorAll("*")].filter((each) => [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) && !each.closest("svg"));
  if (!texts.length) found.push("no text");
  const boxes = texts.map((each) => { const range = document.createRange(); range.selectNodeContents(each); return of(range); });
  texts.forEach((one, at) => {
    const box = boxes[at], style = getComputedStyle(one);
    if (one.scrollWidth > one.clientWidth + 1 && style.display !== "inline") found.push(`clipped: ${name(one)}`);
    if (box.left < -0.6 || box.right > innerWidth + 0.6) found.push(`outside the page: ${name(one)}`);
    if (parseFloat(style.fontSize) < 11) found.push(`small: ${name(one)}`);
    const shades = [brightness(style.color), brightness(behind(one))].sort((a, b) => b - a);
    if ((shades[0] + 0.05) / (shades[1] + 0.05) < 4.5) found.push(`faint: ${name(one)}`);
    boxes.slice(at + 1).forEach((other, next) => { if (meet(box, other)) found.push(`texts meet: ${name(one)} / ${name(texts[at + 1 + next])}`); });
  });
  for (const svg of document.querySelectorAll("svg")) {
    const box = of(svg);
    if (box.left < -0.6 || box.right > innerWidth + 0.6 || box.width < 90) found.push(`a chart is ${box.width} wide, from ${box.left}`);
    texts.forEach((text, at) => { if (meet(box, boxes[at])) found.push(`a chart covers ${name(text)}`); });
  }
  for (const chart of document.querySelectorAll(".chart")) {
    const rows = of(chart.querySelector("svg")), names = [...chart.querySelectorAll(".names > div")];
    names.forEach((each, row) => {
      const middle = (of(each).top + of(each).bottom) / 2, wanted = rows.top + ((row + 0.5) * rows.height) / names.length;
      if (Math.abs(middle - wanted) > 1.5) found.push(`${name(each)} does not stand beside its row`);
    });
  }
  if (document.documentElement.scrollWidth > innerWidth) found.push("the page scrolls sideways");
  return found;
})()
