"""What the page says to its chapters."""

LEVEL_1 = (
    "Level 1: right answers to items without a trap. Twins of traps are not among them. A dimension is the mean of its "
    "two skills, competency the mean of the six."
)
LEVEL_2 = (
    "Level 2: a perceptual trap offers things that are not there, a cognitive trap asks about something that does not "
    "happen. Reliability is the accuracy on them. In every cognitive trap the rejecting option is right, so always "
    "rejecting scores 100 % without understanding anything; the rows below show what that is expected to score."
)
TWINS = (
    "A twin asks the same about a moment at which the premise is true: there rejecting is wrong. Paired accuracy "
    "counts a trap only with its twin, over-rejection the twins that were rejected."
)
NO_TWINS = (
    "None of these traps has a true-premise twin. Rejecting and discriminating cannot be separated here: a model that "
    "rejects everything would score best."
)
GAZE = (
    "The same items, without and with what the surgeon looks at (a circle on the picture, a sentence, or both); the "
    "difference is paired item by item."
)
TEXT = (
    "The same items without any picture. Where text only comes close to full, the set is answerable from language. The "
    "paper's traps were right in 54 to 59 % without pictures, of four options."
)
REMOVAL = (
    "Failed traps asked as their sanitised twin. Items that failed once do better the next time whatever is changed "
    "(regression to the mean), so two controls stand beside it: the failed trap itself asked again, and the twins of "
    "traps that were passed. What taking the trap away adds is the difference to asking again."
)
ORDER = (
    "Options rotated: a model that reads them gives the same answer in every order. Gaze moved to another instrument, "
    "or mirrored: a model that uses the gaze changes its answer, one that ignores it does not."
)
READING = (
    "Replies are read as a person would: the last explicit choice counts. The strict reading takes only replies that "
    "are nothing but a choice; “differ” is the share of replies on which the two readings disagree. An item to which a "
    "file of replies has none is missing and counts as wrong; a failed request is in no number."
)
METHOD = (
    "Intervals (95 %) leave out each video or patient in turn (Student's t at the effective number of them); those of "
    "single shares are Wilson's with that uncertainty. A part that is the same in every video adds the uncertainty of "
    "its own interval to a mean. Differences are paired item by item; their p exchanges the two sides video by video; "
    "an interval without width says that every video has the same difference. Guessing is one over the number of "
    "options, of a pair the product for both."
)
CIRCLE = "; the circle is where the surgeon looked"
METRIC = (
    "What reliability as the paper defines it can and cannot show: a low value shows that a model is led astray, or "
    "that it cannot read. A high value shows that it rejects, or avoids what is not there; it does not show that it "
    "looked. Only twins and text only tell these apart."
)
