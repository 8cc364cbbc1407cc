// What is wrong with the page as it is shown: overlaps, clipped or small text, what is covered or outside the window.
(() => {
  const found = [], of = (element) => element.getBoundingClientRect(), name = (element) => element.textContent.slice(0, 40);
  const sheet = of(find("sheet")), scale = view.scale;
  const cards = [...document.querySelectorAll("#items .card, #items .pill")];
  const box = (card) => of(card.querySelector(".b:not(.s)") ?? card.querySelector("rect"));
  const meet = (a, b, by = 0.6) => a.left < b.right - by && b.left < a.right - by && a.top < b.bottom - by && b.top < a.bottom - by;
  if (!cards.length) found.push("no cards");
  for (const frame of [...cards, ...document.querySelectorAll("#frames rect")]) {
    const rect = frame.tagName === "rect" ? of(frame) : box(frame);
    if (rect.left < sheet.left - 0.6 || rect.right > sheet.right + 0.6 || rect.top < sheet.top - 0.6 || rect.bottom > sheet.bottom + 0.6) found.push(`outside the window: ${name(frame)}`);
  }
  cards.forEach((one, at) => {
    for (const other of cards.slice(at + 1)) if (meet(box(one), box(other))) found.push(`overlap: ${name(one)} / ${name(other)}`);
    for (const text of one.querySelectorAll("text")) {
      const inner = of(text), outer = box(one);
      if (inner.left < outer.left + 1 || inner.right > outer.right - 1 || inner.top < outer.top - 3 || inner.bottom > outer.bottom + 3) found.push(`clipped: ${text.textContent}`);
    }
    const texts = [...one.querySelectorAll("text")].map(of);
    texts.forEach((a, number) => texts.slice(number + 1).forEach((b) => { if (meet(a, b, 3)) found.push(`texts meet: ${name(one)}`); }));
    const rect = box(one), top = document.elementFromPoint(rect.left + rect.width / 2, rect.top + rect.height / 2);
    if (!one.contains(top)) found.push(`covered: ${name(one)} by ${top?.id || top?.getAttribute("class")}`);
  });
  for (const flow of document.querySelectorAll(".flow")) {
    const inner = of(flow.querySelector("text")), outer = of(flow.querySelector("rect"));
    if (inner.left < outer.left + 1 || inner.right > outer.right - 1) found.push(`clipped: ${name(flow)}`);
  }
  const labels = [...document.querySelectorAll("#lines text")];
  labels.forEach((one, at) => {
    for (const card of cards) if (meet(of(one), box(card), 3)) found.push(`label on a card: ${name(one)} / ${name(card)}`);
    for (const other of labels.slice(at + 1)) if (meet(of(one), of(other), 1)) found.push(`labels meet: ${name(one)} / ${name(other)}`);
  });
  for (const text of document.querySelectorAll("#sheet text")) {
    if (getComputedStyle(text).display !== "none" && parseFloat(getComputedStyle(text).fontSize) * scale < 10.99) found.push(`small: ${text.textContent}`);
  }
  for (const element of document.querySelectorAll("header *, footer *")) {
    const rect = of(element);
    if (!rect.width || !element.checkVisibility() || element.closest("details:not([open]) > ul") || getComputedStyle(element).position === "absolute") continue;
    if (rect.left < -0.6 || rect.right > innerWidth + 0.6 || rect.top < -0.6 || rect.bottom > innerHeight + 0.6) found.push(`outside the page: ${element.id || element.tagName}`);
    if (element.matches("button, select, summary") && parseFloat(getComputedStyle(element).fontSize) < 11) found.push(`small: ${element.id}`);
    if (element.matches("button, header h1, header p") && element.scrollWidth > element.clientWidth + 1) found.push(`clipped: ${element.id}`);
  }
  if (document.documentElement.scrollWidth > innerWidth) found.push("the page scrolls sideways");
  return found;
})()
