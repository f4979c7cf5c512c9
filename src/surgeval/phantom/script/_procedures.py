"""What is done in each procedure, as tables: phases, their share of the time, and the jobs of each hand.

A job names a lane (the trocar and the hand behind it), the triplets it may turn out to be, and its place in the
phase (0 … 1). Every triplet is one of CholecT50's 100; `PLAUSIBLE` collects them for tests and documentation.
"""

from __future__ import annotations

from surgeval.phantom.script._plan import Errand, PhasePlan, ProcedurePlan

CHOLECYSTECTOMY, BLEEDING, ADHESIOLYSIS = "cholecystectomy", "cholecystectomy with bleeding", "adhesiolysis"


_PREPARATION = PhasePlan(
    "Preparation",
    6.5,
    "right upper abdomen",
    (
        Errand("assist", ("grasper,grasp,gallbladder",), 0.36, 0.66),
        Errand("assist", ("grasper,retract,gallbladder",), 0.76, 1.0),
        Errand(
            "left",
            (
                "grasper,retract,omentum",
                "grasper,retract,liver",
                "grasper,retract,gut",
                "grasper,grasp,omentum",
                "grasper,grasp,gut",
                "grasper,retract,peritoneum",
                "grasper,grasp,liver",
                "grasper,dissect,omentum",
            ),
            0.45,
            0.95,
        ),
        Errand(
            "right",
            (
                "hook,dissect,omentum",
                "scissors,cut,adhesion",
                "bipolar,dissect,adhesion",
                "irrigator,retract,omentum",
                "bipolar,retract,omentum",
                "hook,retract,liver",
                "irrigator,dissect,omentum",
            ),
            0.55,
            0.95,
            0.7,
        ),
    ),
)

_CALOT = PhasePlan(
    "CalotTriangleDissection",
    12.5,
    "Calot's triangle",
    (
        Errand("assist", ("grasper,retract,gallbladder",), 0.0, 1.0, 0.7),
        Errand(
            "left",
            (
                "grasper,retract,gallbladder",
                "grasper,retract,cystic_pedicle",
                "grasper,grasp,cystic_pedicle",
                "grasper,grasp,gallbladder",
            ),
            0.08,
            0.55,
        ),
        Errand(
            "left",
            (
                "grasper,retract,gallbladder",
                "grasper,grasp,cystic_duct",
                "grasper,retract,cystic_pedicle",
                "grasper,grasp,cystic_artery",
                "grasper,grasp,peritoneum",
            ),
            0.62,
            0.95,
            0.85,
        ),
        Errand("right", ("hook,dissect,peritoneum", "hook,dissect,omentum", "hook,dissect,gallbladder"), 0.06, 0.32),
        Errand("right", ("hook,cut,peritoneum", "hook,dissect,cystic_artery"), 0.36, 0.52, 0.4),
        Errand(
            "right",
            ("hook,dissect,cystic_duct", "hook,dissect,cystic_artery", "hook,coagulate,cystic_pedicle"),
            0.4,
            0.66,
        ),
        Errand(
            "right",
            (
                "bipolar,coagulate,cystic_pedicle",
                "bipolar,coagulate,blood_vessel",
                "hook,dissect,gallbladder",
                "irrigator,dissect,cystic_pedicle",
                "scissors,cut,peritoneum",
                "bipolar,dissect,cystic_duct",
                "bipolar,dissect,cystic_artery",
                "grasper,dissect,gallbladder",
                "irrigator,dissect,cystic_duct",
                "bipolar,coagulate,peritoneum",
            ),
            0.82,
            1.0,
        ),
        Errand(
            "extra", ("irrigator,aspirate,fluid", "irrigator,retract,liver", "bipolar,retract,liver"), 0.55, 0.85, 0.3
        ),
    ),
)

_CLIPPING = PhasePlan(
    "ClippingCutting",
    13.5,
    "cystic duct and artery",
    (
        Errand("assist", ("grasper,retract,gallbladder",), 0.0, 0.95, 0.6),
        Errand(
            "left",
            (
                "grasper,retract,gallbladder",
                "grasper,grasp,gallbladder",
                "grasper,retract,cystic_pedicle",
                "bipolar,retract,gallbladder",
            ),
            0.05,
            0.9,
        ),
        Errand("right", ("clipper,clip,cystic_artery",), 0.12, 0.24),
        Errand("right", ("clipper,clip,cystic_duct",), 0.28, 0.4),
        Errand(
            "right",
            ("clipper,clip,cystic_duct", "clipper,clip,blood_vessel", "clipper,clip,cystic_pedicle"),
            0.44,
            0.56,
            0.8,
        ),
        Errand("right", ("scissors,cut,cystic_artery",), 0.74, 0.85),
        Errand("right", ("scissors,cut,cystic_duct",), 0.89, 1.0),
    ),
)

_RELEASE = (
    Errand("assist", ("grasper,retract,gallbladder",), 0.04, 0.9, 0.6),
    Errand("left", ("grasper,retract,gallbladder",), 0.02, 0.45),
    Errand(
        "left",
        (
            "grasper,retract,gallbladder",
            "grasper,retract,liver",
            "grasper,grasp,gallbladder",
            "grasper,retract,cystic_plate",
        ),
        0.52,
        0.92,
    ),
    Errand("right", ("hook,dissect,gallbladder", "hook,dissect,cystic_plate"), 0.16, 0.44),
)

_DISSECTION = PhasePlan(
    "GallbladderDissection",
    11.5,
    "gallbladder bed",
    (
        *_RELEASE,
        Errand(
            "right",
            (
                "hook,dissect,gallbladder",
                "hook,dissect,cystic_plate",
                "hook,coagulate,liver",
                "hook,coagulate,cystic_plate",
                "hook,coagulate,gallbladder",
            ),
            0.5,
            0.72,
        ),
        Errand(
            "right",
            (
                "hook,dissect,gallbladder",
                "bipolar,coagulate,liver",
                "bipolar,coagulate,cystic_plate",
                "scissors,dissect,gallbladder",
                "bipolar,dissect,gallbladder",
                "scissors,cut,cystic_plate",
                "bipolar,coagulate,gallbladder",
                "bipolar,dissect,cystic_plate",
                "scissors,dissect,cystic_plate",
                "grasper,dissect,cystic_plate",
            ),
            0.88,
            1.0,
        ),
        Errand(
            "extra",
            ("irrigator,aspirate,fluid", "irrigator,retract,gallbladder", "irrigator,dissect,cystic_plate"),
            0.3,
            0.6,
            0.35,
        ),
    ),
)

_DISSECTION_BLEEDING = PhasePlan(
    "GallbladderDissection",
    14.5,
    "gallbladder bed",
    (
        *_RELEASE,
        Errand("extra", ("irrigator,aspirate,fluid",), 0.42, 0.7),
        Errand(
            "right",
            ("bipolar,coagulate,liver", "bipolar,coagulate,cystic_plate", "bipolar,coagulate,blood_vessel"),
            0.64,
            0.8,
        ),
        Errand("extra", ("irrigator,aspirate,fluid",), 0.76, 0.95),
        Errand("right", ("bipolar,coagulate,cystic_plate", "bipolar,coagulate,liver"), 0.85, 1.0),
    ),
)

_PACKAGING = PhasePlan(
    "GallbladderPackaging",
    7.0,
    "gallbladder bed",
    (
        Errand("bag", ("specimen_bag,null_verb,null_target",), 0.2, 1.0),
        Errand("right", ("grasper,pack,gallbladder",), 0.42, 0.78),
        Errand("left", ("grasper,grasp,specimen_bag", "bipolar,grasp,specimen_bag"), 0.42, 0.95, 0.85),
        Errand("assist", ("grasper,retract,liver", "grasper,grasp,liver"), 0.1, 0.9, 0.4),
        Errand("extra", ("irrigator,retract,liver", "irrigator,aspirate,fluid"), 0.3, 0.85, 0.4),
    ),
)

_CLEANING = PhasePlan(
    "CleaningCoagulation",
    6.0,
    "gallbladder bed",
    (
        Errand("bag", ("specimen_bag,null_verb,null_target",), 0.0, 1.0),
        Errand(
            "left", ("grasper,retract,liver", "grasper,grasp,specimen_bag", "irrigator,retract,liver"), 0.2, 0.9, 0.7
        ),
        Errand(
            "right",
            (
                "irrigator,irrigate,liver",
                "irrigator,irrigate,abdominal_wall_cavity",
                "irrigator,irrigate,cystic_pedicle",
            ),
            0.25,
            0.55,
        ),
        Errand("right", ("irrigator,aspirate,fluid",), 0.62, 1.0),
        Errand(
            "extra",
            (
                "bipolar,coagulate,liver",
                "bipolar,coagulate,cystic_plate",
                "bipolar,coagulate,omentum",
                "bipolar,coagulate,abdominal_wall_cavity",
                "bipolar,grasp,liver",
            ),
            0.5,
            0.95,
            0.6,
        ),
    ),
)

_RETRACTION = PhasePlan(
    "GallbladderRetraction",
    3.0,
    "right upper abdomen",
    (
        Errand("bag", ("specimen_bag,null_verb,null_target",), 0.0, 0.25),
        Errand("left", ("grasper,grasp,specimen_bag",), 0.0, 0.2, 0.8),
    ),
)

_ADHESION_WORK = PhasePlan(
    "Preparation",
    42.0,
    "adhesions at the abdominal wall",
    (
        Errand("left", ("grasper,retract,omentum", "grasper,grasp,omentum"), 0.06, 0.24),
        Errand("left", ("grasper,retract,gut", "grasper,grasp,gut", "grasper,retract,peritoneum"), 0.29, 0.47),
        Errand("left", ("grasper,retract,omentum", "grasper,grasp,peritoneum"), 0.52, 0.7),
        Errand("left", ("grasper,retract,gut", "grasper,retract,omentum"), 0.76, 0.96),
        Errand("assist", ("grasper,retract,peritoneum", "grasper,grasp,peritoneum"), 0.18, 0.42, 0.6),
        Errand("assist", ("grasper,retract,omentum", "grasper,retract,liver"), 0.55, 0.85, 0.6),
        Errand("right", ("scissors,cut,adhesion",), 0.08, 0.13),
        Errand(
            "right", ("scissors,cut,adhesion", "scissors,dissect,omentum", "scissors,coagulate,omentum"), 0.15, 0.22
        ),
        Errand("right", ("scissors,cut,adhesion", "scissors,cut,peritoneum", "scissors,cut,omentum"), 0.24, 0.29),
        Errand("right", ("bipolar,dissect,adhesion", "bipolar,coagulate,omentum"), 0.37, 0.44),
        Errand(
            "right", ("bipolar,dissect,adhesion", "bipolar,dissect,omentum", "bipolar,coagulate,peritoneum"), 0.46, 0.53
        ),
        Errand("right", ("hook,dissect,peritoneum", "hook,dissect,omentum", "hook,coagulate,omentum"), 0.62, 0.7),
        Errand("right", ("hook,cut,peritoneum", "hook,dissect,blood_vessel", "hook,cut,blood_vessel"), 0.72, 0.78),
        Errand("right", ("scissors,cut,adhesion",), 0.87, 0.92),
        Errand("right", ("scissors,cut,adhesion", "scissors,cut,omentum"), 0.94, 0.99),
        Errand(
            "extra",
            ("irrigator,aspirate,fluid", "irrigator,dissect,omentum", "irrigator,retract,omentum"),
            0.4,
            0.55,
            0.7,
        ),
        Errand(
            "extra",
            ("bipolar,coagulate,blood_vessel", "bipolar,retract,omentum", "clipper,clip,blood_vessel"),
            0.74,
            0.82,
            0.7,
        ),
    ),
)

_ADHESION_CLEANING = PhasePlan(
    "CleaningCoagulation",
    18.0,
    "abdominal wall",
    (
        Errand("left", ("grasper,retract,gut", "grasper,retract,omentum"), 0.1, 0.6, 0.8),
        Errand("right", ("irrigator,irrigate,abdominal_wall_cavity",), 0.18, 0.34),
        Errand("right", ("irrigator,aspirate,fluid",), 0.4, 0.68),
        Errand(
            "extra",
            ("bipolar,coagulate,abdominal_wall_cavity", "bipolar,coagulate,peritoneum", "bipolar,coagulate,omentum"),
            0.35,
            0.6,
        ),
        Errand("left", ("grasper,grasp,omentum", "grasper,grasp,gut"), 0.7, 0.88, 0.6),
    ),
)

_USUAL_OBJECTS = (
    ("sponge", 2.2),
    ("gallstone", 2.0),
    ("clip", 1.5),
    ("needle", 1.5),
    ("silicone_loop", 1.0),
    ("external_drain", 1.5),
    ("mesh", 0.7),
    ("absorbable_hemostatic_agent", 0.7),
)

PROCEDURES: dict[str, ProcedurePlan] = {
    CHOLECYSTECTOMY: ProcedurePlan(
        CHOLECYSTECTOMY,
        "cholecystectomy",
        (_PREPARATION, _CALOT, _CLIPPING, _DISSECTION, _PACKAGING, _CLEANING, _RETRACTION),
        _USUAL_OBJECTS,
    ),
    BLEEDING: ProcedurePlan(
        BLEEDING,
        "cholecystectomy",
        (_PREPARATION, _CALOT, _CLIPPING, _DISSECTION_BLEEDING, _PACKAGING, _CLEANING, _RETRACTION),
        (("absorbable_hemostatic_agent", 5.0), *_USUAL_OBJECTS[:-1]),
        bleeding=True,
    ),
    ADHESIOLYSIS: ProcedurePlan(
        ADHESIOLYSIS,
        "adhesiolysis",
        (_ADHESION_WORK, _ADHESION_CLEANING),
        (
            ("mesh", 3.0),
            ("needle", 2.0),
            ("sponge", 2.0),
            ("specimen", 2.0),
            ("external_drain", 1.5),
            ("silicone_loop", 1.0),
        ),
    ),
}

PLAUSIBLE: frozenset[str] = frozenset(
    triplet for plan in PROCEDURES.values() for phase in plan.phases for job in phase.jobs for triplet in job.what
) - {"specimen_bag,null_verb,null_target"}
