// What is shown, as a picture of its own: SVG or PNG, with the colours of the page.

const LOOKS = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap", "opacity", "font-family", "font-size", "font-weight", "font-style", "text-anchor", "text-decoration", "paint-order", "display"];

/** The whole sheet as a document of SVG that needs no style sheet. */
function drawing(view) {
  view.cull(true);
  const { width, height } = view.scene, margin = 16;
  const sheet = view.svg.cloneNode(true), look = (from, to) => {
    const style = getComputedStyle(from);
    for (const name of LOOKS) to.style.setProperty(name, style.getPropertyValue(name));
    [...from.children].forEach((child, at) => look(child, to.children[at]));
  };
  view.svg.classList.remove("far");
  for (const id of ["world", "arrow-f", "arrow-b", "arrow-lit"]) look(view.svg.querySelector(`#${id}`), sheet.querySelector(`#${id}`));
  view.update();
  sheet.querySelector("#world").removeAttribute("transform");
  for (const [name, value] of Object.entries({ xmlns: "http://www.w3.org/2000/svg", width: width + 2 * margin, height: height + 2 * margin, viewBox: `${-margin} ${-margin} ${width + 2 * margin} ${height + 2 * margin}` })) sheet.setAttribute(name, value);
  const ground = svgElement("rect", { x: -margin, y: -margin, width: "100%", height: "100%", fill: getComputedStyle(document.body).backgroundColor });
  sheet.insertBefore(ground, sheet.querySelector("#world"));
  for (const name of ["id", "tabindex", "class"]) sheet.removeAttribute(name);
  return new XMLSerializer().serializeToString(sheet);
}

/** The same as PNG, with two pixels for each of the drawing where it is not too large. */
async function painted(text) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const scale = Math.min(2, 8000 / Math.max(image.width, image.height)), canvas = document.createElement("canvas");
  canvas.width = image.width * scale;
  canvas.height = image.height * scale;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

async function savePicture(form, view, title) {
  const text = drawing(view), blob = form === "png" ? await painted(text) : new Blob([text], { type: "image/svg+xml" });
  const link = html("a", { href: URL.createObjectURL(blob), download: `${title.replace(/[^\w.-]+/g, "_")}.${form}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
