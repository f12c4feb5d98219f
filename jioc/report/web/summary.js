// --- sections: id, name, word in the contents, there(): whether it has anything, fill(node) 

const SECTIONS = [];
const PANELS = 12; // matrices and class charts drawn at once
const section = (id, name, short, there, fill) => SECTIONS.push({ id, name, short, there, fill });
const always = () => true;
function listed(groups) {
  const names = groups.map((g) => D.groups[g.g ?? g].label);
  return names.length <= 6
    ? names.join("; ")
    : `${names.slice(0, 5).join("; ")} and ${names.length - 5} more`;
}
function later(shown, groups) {
  // what is ticked and finds no room
  if (groups.length === shown.length) return "";
  const others = listed(groups.slice(shown.length));
  const first = ` Drawn: the first ${shown.length} of ${groups.length};`;
  return `${first} not drawn: ${others}. Untick some to draw others.`;
}

section("summary", "Summary", "Summary", always, (node) => {
  node.append(
    say(
      "Accuracy in percent on the test images of all classes seen: its average over the tasks, after " +
        "the last task, and how much of their best accuracy past tasks have lost. A tick draws the run " +
        "below.",
    ),
  );
  const groups = matching(),
    theirs = groups.some((g) => D.groups[g].paper),
    pairs = groups.some((g) => D.groups[g].base !== null);
  const readouts = READOUTS.filter((n) => groups.some((g) => counted(g).some(({ run }) => run.readouts[n])));
  // What is compared comes first, so that a narrow screen shows it; paper has no room for all the rest.
  const [first, ...others] = readouts,
    further = (n) => ["average", "last", "forgetting"].map((kind) => ({ n, kind, wide: kind !== "average" }));
  const rest = [{ n: first, kind: "last" }, { n: first, kind: "forgetting" }, ...others.flatMap(further)];
  const heads = [{ text: "run", words: true }, { text: "n" }, { text: `${title(first)} average` }];
  if (pairs) heads.push({ text: "gain" });
  if (theirs) heads.push({ text: "paper" }, { text: "difference" }, { text: "paper’s gain" });
  for (const { n, kind, wide } of rest) heads.push({ text: `${title(n)} ${kind}`, wide });
  let lacking = false; // whether some runs of a setting have a figure and others have not
  const rows = groups.map((g) => {
    const group = D.groups[g],
      done = finished(g),
      shown = drawn().includes(g);
    const values = (n, kind) => done.map(({ run }) => run.readouts[n] && run.readouts[n][kind]).filter(known);
    const name = nameCell(g, group.name);
    name.show.prepend(tick(shown, `draw ${group.label}`, () => pick(g, !shown)));
    const open = counted(g)[0],
      state = open ? `unfinished, ${learnt(open.run)}` : "left out";
    const cells = [
      name,
      text(done.length ? String(done.length) : state, done.length),
      spread(values(first, "average"), percent),
    ];
    if (pairs)
      cells.push(
        spread(
          gains(g).map((one) => one.all),
          gained,
        ),
      );
    if (theirs) {
      const ours = values(group.headline, "average"),
        their = group.paper;
      const difference = their && ours.length ? mean(ours) - their.average : null;
      cells.push(
        text(percent(their && their.average), their && their.average),
        text(gained(difference), difference),
        text(gained(their && their.gain), their && their.gain),
      );
    }
    for (const { n, kind } of rest) {
      const found = values(n, kind),
        some = found.length > 0 && found.length < done.length;
      lacking ||= some;
      cells.push(spread(found, percent, some ? ` (${found.length})` : ""));
    }
    return { g, cells };
  });
  let caption = "Mean ± standard deviation over n seeds.";
  if (lacking)
    caption += " In brackets: the number of seeds that have the figure, where others of the n have not.";
  if (pairs)
    caption +=
      " Gain: average minus that of the same setting without coordination, seed by seed, over the " +
        "seeds that both have.";
  if (theirs) caption += " Paper: Wang et al., IJCAI 2024, the same data, backbone, memory and tasks.";
  const open = groups.flatMap(counted).filter(({ run }) => !run.complete).length;
  if (open)
    caption +=
      ` ${open} unfinished ${open === 1 ? "run is" : "runs are"} drawn below ` +
      "as far as they have come and not averaged here.";
  const { place: where, common_place: common } = D.groups[groups[0]],
    one = inPlaces(groups).length === 1;
  const told = one ? (where === common ? null : where) : common; // what all share is said above
  node.append(table("summary", heads, rows, { caption: told }), el("p", { class: "hint" }, caption));
});
