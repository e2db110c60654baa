"""Which notices hold, and how a shutdown under way changes by them."""

from hypothesis import given
from hypothesis import strategies as st

from lastcall.graceful.deadlines.joining import notice_changes
from lastcall.graceful.deadlines.notice_board import EXPIRE_SECONDS, NoticeBoard
from lastcall.model.shutdown import NoticeReceived, NoticeWithdrawn
from lastcall.model.shutdown_notice import NoticeSource, ShutdownNotice

EC2, NUT = NoticeSource.EC2, NoticeSource.NUT


def notice(deadline, source=EC2, key="k"):
    return ShutdownNotice(source=source, key=key, deadline=deadline, reason="r")


def test_a_source_that_repeats_itself_says_nothing_new_and_can_only_hasten():
    board = NoticeBoard()
    assert board.put(notice(100), 0)
    assert not board.put(notice(100.4), 1)
    assert not board.put(notice(99.6), 1), "computed anew from each answer"
    assert not board.put(notice(200), 1)
    assert board.put(notice(50), 1)
    assert [one.deadline for one in board.all_notices()] == [50]


def test_a_person_may_put_it_off():
    board = NoticeBoard()
    board.put(notice(100), 0)
    assert board.put(notice(300, key="2"), 1, replace=True)
    assert [one.deadline for one in board.all_notices()] == [300]


def test_a_notice_that_did_not_come_true_is_not_news_until_it_is_withdrawn():
    board = NoticeBoard()
    board.put(notice(100), 0)
    assert board.drop_expired(100 + EXPIRE_SECONDS - 1) == []
    [over] = board.drop_expired(100 + EXPIRE_SECONDS)
    assert over.deadline == 100
    assert not board.put(notice(500), 170)
    assert board.put(notice(500, key="another"), 170)
    board = NoticeBoard()
    board.put(notice(100), 0)
    board.drop_expired(160)
    assert board.withdraw(EC2) is None
    assert board.put(notice(500), 170)


def test_what_is_due_and_when_that_changes():
    board = NoticeBoard([notice(100), notice(40, NUT)])
    assert [one.source for one in board.due_notices(0, 50)] == [NUT]
    assert [one.source for one in board.due_notices(50, 50)] == [NUT, EC2]
    assert board.next_moment(0, 50) == 50
    assert board.next_moment(50, 50) == 100
    assert board.next_moment(100, 50) == 160
    assert NoticeBoard().next_moment(0, 50) is None


@given(st.lists(st.tuples(st.sampled_from([EC2, NUT]), st.floats(0, 1000), st.floats(0, 1000)), max_size=20))
def test_without_a_withdrawal_no_deadline_moves_back(puts):
    board, held = NoticeBoard(), {}
    for source, deadline, now in puts:
        board.put(notice(deadline, source), now)
        for one in board.all_notices():
            assert one.deadline <= held.get(one.source, one.deadline)
            held[one.source] = one.deadline


def test_a_shutdown_hears_of_what_is_new_and_what_is_over():
    events = list(notice_changes({EC2: 100.0}, [notice(30, NUT)], 5))
    assert [type(one) for one in events] == [NoticeWithdrawn, NoticeReceived]
    assert events[1].text == "NUT: r; the machine shuts down in 25s"
    assert list(notice_changes({EC2: 100.0}, [notice(100.5)], 5)) == []
    [nearer] = notice_changes({EC2: 100.0}, [notice(20)], 5)
    assert nearer.deadline == 20
