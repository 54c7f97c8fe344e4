#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "base/status.h"

/// Fails unless `expr`, a Status or Result, is ok; prints its message.
#define EXPECT_OK(expr) EXPECT_TRUE(::tandem::test::describe_ok(expr))
#define ASSERT_OK(expr) ASSERT_TRUE(::tandem::test::describe_ok(expr))

/// Fails unless `expr` is an error of `code` whose message contains `text`.
#define EXPECT_ERROR(expr, code, text) EXPECT_TRUE(::tandem::test::describe_error(expr, code, text))

namespace tandem::test {

inline const Status& status_of(const Status& status) {
  return status;
}
template <class T>
const Status& status_of(const Result<T>& result) {
  return result.status();
}

template <class T>
::testing::AssertionResult describe_ok(const T& result) {
  if (status_of(result).ok()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << status_code_name(status_of(result).code()) << ": " << status_of(result).message();
}

template <class T>
::testing::AssertionResult describe_error(const T& result, StatusCode code, std::string_view text) {
  const Status& status = status_of(result);
  if (status.ok()) return ::testing::AssertionFailure() << "expected an error, got ok";
  if (status.code() != code || status.message().find(text) == std::string::npos) {
    return ::testing::AssertionFailure()
           << "expected " << status_code_name(code) << " with \"" << text << "\", got "
           << status_code_name(status.code()) << ": " << status.message();
  }
  return ::testing::AssertionSuccess();
}

}  // namespace tandem::test
