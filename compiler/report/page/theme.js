// theme.js: light or dark: what the system prefers, until the button says otherwise.

const preferredTheme = matchMedia("(prefers-color-scheme: dark)");

// Where a file may keep nothing, the choice lasts as long as the page.
function storedTheme(value) {
  try {
    if (value) localStorage.setItem("ampc-theme", value);
    return localStorage.getItem("ampc-theme");
  } catch {
    return null;
  }
}

function showTheme(theme) {
  document.documentElement.dataset.theme = theme;
  document.getElementById("theme").textContent = theme === "dark" ? "Light theme" : "Dark theme";
}

function startTheme() {
  showTheme(storedTheme() || (preferredTheme.matches ? "dark" : "light"));
  preferredTheme.addEventListener("change", (event) => {
    if (!storedTheme()) showTheme(event.matches ? "dark" : "light");
  });
  document.getElementById("theme").addEventListener("click", () => {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    storedTheme(theme);
    showTheme(theme);
  });
}
