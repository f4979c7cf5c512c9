
// The sentence of a term beside it, while the reader points at it or has it in focus.
(() => {
  const owners = document.querySelectorAll("[aria-describedby^='term-']");
  if (!owners.length) return;
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("role", "tooltip");
  tip.hidden = true;
  document.body.append(tip);
  let leaving = 0;
  const hide = () => { tip.hidden = true; };
  const later = () => { leaving = setTimeout(hide, 150); }; // time to reach the tip itself
  const stay = () => clearTimeout(leaving);
  const show = (owner) => {
    stay();
    tip.replaceChildren(...owner.getAttribute("aria-describedby").split(" ").map((id) => {
      const says = document.getElementById(id), line = document.createElement("p"), name = document.createElement("strong");
      name.textContent = says.previousElementSibling.textContent;
      line.append(name, ` ${says.textContent}`);
      return line;
    }));
    tip.hidden = false;
    const box = owner.getBoundingClientRect(), edge = document.documentElement.clientWidth - tip.offsetWidth - 12;
    tip.style.left = `${scrollX + Math.max(12, Math.min(box.left, edge))}px`;
    const below = box.bottom + 8 + tip.offsetHeight <= innerHeight;
    tip.style.top = `${scrollY + (below ? box.bottom + 8 : Math.max(0, box.top - 8 - tip.offsetHeight))}px`;
  };
  owners.forEach((owner) => {
    owner.addEventListener("mouseenter", () => show(owner));
    owner.addEventListener("mouseleave", later);
    owner.addEventListener("focus", () => show(owner));
    owner.addEventListener("blur", later);
    owner.addEventListener("click", (event) => {
      if (event.pointerType !== "touch") return hide();
      if (owner.matches("a")) event.preventDefault(); // a finger cannot hover: it gets the sentence, not the jump
      show(owner);
    });
  });
  tip.addEventListener("mouseenter", stay);
  tip.addEventListener("mouseleave", later);
  addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
})();
