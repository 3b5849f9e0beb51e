// tabs.js: the views, as the tabs pattern of the ARIA Authoring Practices: arrow keys go from tab to tab.

const tabs = []; // { name, label, panel, button, draw, refresh, isDrawn }

// draw(panel) makes the view when it is first shown; the function that it gives back brings it up to date.
function addTab(name, label, draw) {
  const button = el("button", {
    type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `view-${name}`,
    onclick: () => showTab(name), onkeydown: onTabKey,
  }, label);
  const panel = el("section", { role: "tabpanel", id: `view-${name}`, "aria-labelledby": `tab-${name}`, tabindex: 0 });
  document.getElementById("tabs").append(button);
  document.getElementById("views").append(panel);
  tabs.push({ name, panel, button, draw, refresh: null, isDrawn: false });
}

const shownTab = () => tabs.find((tab) => !tab.panel.hidden);

function showTab(name) {
  for (const tab of tabs) {
    const isShown = tab.name === name;
    tab.panel.hidden = !isShown;
    tab.button.setAttribute("aria-selected", isShown);
    tab.button.tabIndex = isShown ? 0 : -1;
    if (isShown) bringUp(tab);
  }
}

function bringUp(tab) {
  if (!tab.isDrawn) {
    tab.isDrawn = true;
    tab.refresh = tab.draw(tab.panel);
  } else if (tab.refresh) tab.refresh();
}

function refreshShown() {
  const tab = shownTab();
  if (tab && tab.refresh) tab.refresh();
}

function onTabKey(event) {
  const at = tabs.findIndex((tab) => tab.button === event.currentTarget);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
  if (to === undefined) return;
  const tab = tabs[(to + tabs.length) % tabs.length];
  showTab(tab.name);
  tab.button.focus();
  event.preventDefault();
}
