"use strict";
// Elements of the page. All text enters it through textContent, so no name can be markup.

const SVG = "http://www.w3.org/2000/svg";
function make(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child);
  return node;
}
const el = (tag, attributes, ...children) => make(document.createElement(tag), attributes, children);
const sv = (tag, attributes, ...children) => make(document.createElementNS(SVG, tag), attributes, children);
const printing = () => document.documentElement.classList.contains("printing");
const $ = (id) => document.getElementById(id);
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const button = (text, attributes, act) => el("button", { type: "button", onclick: act, ...attributes }, text);
